// Starts processes: the checks in order, the key or id that makes a repeated start attach, and the journal that exists
// before the child.

import { createHmac } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { FairTurns } from '../../base/fair-turns.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { EndedJournal } from '../../journal/read/ended-journal.ts';
import type { Journal } from '../../journal/write/journal.ts';
import type { Child } from '../child/child.ts';
import type { Children } from '../child/children.ts';
import { startedBody, type ProcessFacts } from '../process/facts.ts';
import { HeldProcess } from '../process/held-process.ts';
import type { ProcessDeps, ProcessWatcher } from '../process/process-deps.ts';
import { Crowding } from './crowding.ts';
import { PathsUnknown } from './known-paths.ts';
import {
  checkRecordable,
  launchPlan,
  startSurroundings,
  type StartSurroundings,
  type InheritedEnvironment,
} from './launch-plan.ts';
import type { Leases } from '../leases/leases.ts';
import { Mounts } from './mounts.ts';
import { PathProbes, type PathAnswers } from './path-probe.ts';
import { loadPosix } from '../../system/posix.ts';
import { giveWay } from '../../system/priority.ts';
import type { Registry } from '../registry.ts';
import { scriptOf } from '../terminal/shell-marks.ts';
import { inputsOf } from './start-inputs.ts';
import { claimsOf, conflict, hostClosed, idClaim, noLease, readBootId } from './start-claims.ts';
import type { Decision } from '../limits/confiner.ts';
import type { ResourceControl } from '../limits/resource-control.ts';
import { Spawner } from './spawner.ts';
import { SpareJournals, storageError, type Spare, type SpareOptions } from './spare-journals.ts';
import { endUnrecorded } from '../descendants/unrecorded-starts.ts';

export interface StarterOptions extends SpareOptions {
  readonly registry: Registry;
  /** Registers a started process and watches it. Throws if its id is taken. */
  readonly begin: (process: HeldProcess) => void;
  readonly leases: Pick<Leases, 'covers'>;
  readonly children: Children;
  readonly control: ResourceControl;
  /** Watches the limits that the kernel does not enforce. */
  readonly watchLimits: (process: HeldProcess, limits: Decision['watched']) => void;
  readonly surroundings: InheritedEnvironment;
  readonly watcher: ProcessWatcher;
  /** Secret of this folder: without it a fingerprint reveals nothing about its inputs. */
  readonly fingerprintKey: Buffer;
  /** The keeper that had the folder before. */
  readonly earlierPid?: number | undefined;
}

export interface StartAnswer {
  readonly process: HeldProcess;
  readonly attached: boolean;
}

/** Computed when needed: usually when the child already runs. */
type Fingerprint = () => string;

interface StartRequest {
  readonly owner: Owner;
  readonly spec: StartSpec;
  readonly fingerprint: Fingerprint;
  /** Undefined: nothing confines it. */
  readonly decision?: Decision | undefined;
}

/** A start before its child exists. */
interface PlannedStart extends StartRequest, Spare {
  readonly plan: LaunchPlan;
}

interface PendingStart {
  readonly fingerprint: Fingerprint;
  readonly done: Promise<HeldProcess>;
}

/** Pending starts of one owner: more would delay other owners in the pool that spawns programs. */
const STARTS_UNDER_WAY = 16;

export class Starter {
  private readonly options: StarterOptions;
  /** A burst of starts delays neither other work nor another owner's start. */
  private readonly turns: FairTurns;
  private readonly spawner: Spawner;
  private readonly crowding: Crowding;
  private readonly pending = new Map<string, PendingStart>();
  private readonly bootId = readBootId();
  private readonly surroundings: StartSurroundings;
  private readonly mounts: Mounts;
  private readonly paths: PathProbes;
  private readonly spares: SpareJournals;
  /** Starts that have passed every check and are not registered yet. */
  private readonly launching = new Set<Promise<unknown>>();
  private closed = false;

  constructor(options: StarterOptions) {
    this.options = options;
    const { startsPerTurn } = options.limits;
    this.turns = new FairTurns({ perLoop: startsPerTurn, perOwner: STARTS_UNDER_WAY });
    this.spares = new SpareJournals({
      ...options,
      prepared: (serial) => options.control.prepareGroup(serial),
    });
    const { children, clock, limits, registry } = options;
    this.spawner = new Spawner({ ...options, spares: this.spares });
    const processors = availableParallelism();
    this.crowding = new Crowding({ clock, live: registry.live, processors });
    this.mounts = new Mounts(children.kind === 'posix' ? loadPosix() : undefined);
    this.surroundings = startSurroundings({ ...options.surroundings, mounts: this.mounts });
    this.paths = new PathProbes({
      clock,
      answerMs: limits.pathAnswerMs,
      start: (plan) => children.start(plan),
    });
  }

  async start(owner: Owner, spec: StartSpec): Promise<StartAnswer> {
    const claims = claimsOf(owner, spec);
    // No start can name an id that the host generates.
    if (claims.length === 0)
      return { process: await this.launch(owner, spec, () => ''), attached: false };
    let made: string | undefined;
    const fingerprint = (): string => (made ??= this.fingerprintOf(spec));
    for (;;) {
      const known = this.known(owner, spec, fingerprint);
      if (known) return { process: known, attached: true };
      const taken = claims.find((claim) => this.pending.has(claim));
      const pending = taken === undefined ? undefined : this.pending.get(taken);
      if (pending === undefined)
        return { process: await this.launchAs(claims, owner, spec, fingerprint), attached: false };
      if (pending.fingerprint() !== fingerprint())
        throw conflict(spec, taken === idClaim(owner, spec.id ?? ''));
      // If the first start fails its claims are free again, and this one continues.
      await pending.done.catch(() => undefined);
    }
  }

  /** The pending start of this id: its caller may use the id before the answer. */
  underWay(owner: Owner, id: string): Promise<unknown> | undefined {
    return this.pending.get(idClaim(owner, id))?.done;
  }

  /** Resolves when every start that is under way now is in the registry, or has failed. */
  async allUnderWay(): Promise<void> {
    await Promise.allSettled(this.launching);
  }

  private fingerprintOf(spec: StartSpec): string {
    return createHmac('sha256', this.options.fingerprintKey).update(inputsOf(spec)).digest('hex');
  }

  private known(owner: Owner, spec: StartSpec, fingerprint: Fingerprint): HeldProcess | undefined {
    const { registry } = this.options;
    const byKey = spec.key === undefined ? undefined : registry.byKey(owner, spec.key);
    const byId = spec.id === undefined ? undefined : registry.byId(owner, spec.id);
    const found = byKey ?? byId;
    if (found && (found.facts.fingerprint !== fingerprint() || (byKey && byId && byKey !== byId)))
      throw conflict(spec, byKey === undefined);
    return found;
  }

  private async launchAs(
    claims: readonly string[],
    owner: Owner,
    spec: StartSpec,
    fingerprint: Fingerprint,
  ): Promise<HeldProcess> {
    const done = this.launch(owner, spec, fingerprint);
    for (const claim of claims) this.pending.set(claim, { fingerprint, done });
    try {
      return await done;
    } finally {
      for (const claim of claims) this.pending.delete(claim);
    }
  }

  private async launch(
    owner: Owner,
    spec: StartSpec,
    fingerprint: Fingerprint,
  ): Promise<HeldProcess> {
    const turn = this.turns.pass(owner);
    if (turn) await turn;
    let launched: Promise<HeldProcess> | undefined;
    try {
      const { control } = this.options;
      const decision = control.concerns(owner, spec) ? await this.decide(owner, spec) : undefined;
      launched = this.planAndStart({ owner, spec, fingerprint, decision });
      this.launching.add(launched);
      return await launched;
    } finally {
      if (launched) this.launching.delete(launched);
      this.turns.done(owner);
    }
  }

  private decide(owner: Owner, spec: StartSpec): Promise<Decision> {
    const { cwd, home } = this.surroundings;
    const local = this.mounts.look();
    return this.options.control.decide(owner, spec, { cwd, home, local });
  }

  /** Prepares for the next start; call it when there is time. */
  prepare(): void {
    this.spares.prepare();
  }

  /** Removes the journal of a deleted process. Returns the problem if the disk refuses. */
  discard(journal: Journal | EndedJournal): HoldfastError | undefined {
    return this.spares.discard(journal);
  }

  /** Resolves when no start is pending; none begins afterwards. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.launching);
    await this.spares.close();
    this.mounts.close();
  }

  private planAndStart(request: StartRequest, answers?: PathAnswers): Promise<HeldProcess> {
    const { owner, spec } = request;
    const { leases, registry } = this.options;
    const { live, retention } = registry;
    if (this.closed) throw hostClosed();
    if (!leases.covers({ owner, lease: spec.lease })) throw noLease(spec.lease);
    if (!live.admits(owner)) throw live.refusal(owner, 'processes are running');
    retention.admit(owner);
    const spare = this.spares.take();
    const plan = this.plan(spec, spare, answers);
    if (plan instanceof PathsUnknown) return this.askAndStart(request, plan.paths, answers);
    // Counted as live from here on, so that concurrent starts keep the limit.
    live.add(owner);
    const { serial, journal } = spare;
    return this.startChild({ ...request, plan, serial, journal });
  }

  /** Probes the paths that may hang, and plans again, as often as the plan finds more of them. */
  private async askAndStart(
    request: StartRequest,
    paths: readonly string[],
    known: PathAnswers = new Map(),
  ): Promise<HeldProcess> {
    const found = await this.paths.ask(request.owner, paths);
    return this.planAndStart(request, new Map([...known, ...found]));
  }

  private plan(spec: StartSpec, spare: Spare, answers?: PathAnswers): LaunchPlan | PathsUnknown {
    try {
      const plan = launchPlan(spec, this.surroundings, spare.serial, answers);
      checkRecordable(spec, plan);
      spare.journal.begin();
      return plan;
    } catch (error) {
      this.spares.giveBack(spare);
      if (error instanceof PathsUnknown) return error;
      throw error instanceof HoldfastError ? error : storageError(error);
    }
  }

  private async startChild(start: PlannedStart): Promise<HeldProcess> {
    const { owner, spec, plan, journal, serial, decision } = start;
    const { clock, limits, watcher, registry, control } = this.options;
    const isCrowding = this.crowding.givesWay(owner);
    let child: Child | undefined;
    try {
      const confined = await this.spawner.spawn(start);
      child = confined.child;
      if (isCrowding) giveWay(child.pid);
      const facts = this.facts(start, child.pid);
      const setting: ProcessDeps = {
        clock,
        watcher,
        writeIds: limits.writeIds,
        inputBytes: limits.inputBytes,
        recordInput: spec.recordInput ?? plan.streams === 'pty',
        groupUse: () => control.use(serial),
      };
      const process = new HeldProcess(facts, journal, setting);
      process.attach(child, plan);
      process.ready = confined.ready;
      journal.append({ kind: 'started', body: startedBody(facts) });
      journal.flush();
      child.listen(process);
      this.options.begin(process);
      if (decision) this.options.watchLimits(process, decision.watched);
      return process;
    } catch (error) {
      registry.live.delete(owner);
      // A process that cannot be recorded must not run, because no caller could find it.
      if (child) await endUnrecorded(child, start.serial);
      control.removeGroup(serial);
      journal.remove();
      throw error;
    }
  }

  private facts(start: PlannedStart, pid: number): ProcessFacts {
    const { owner, spec, fingerprint, serial, plan, decision } = start;
    const argv = plan.shownArgv ?? plan.argv;
    return {
      id: spec.id ?? serial,
      serial,
      owner,
      ...(spec.name !== undefined && { name: spec.name }),
      ...(spec.key !== undefined && { key: spec.key }),
      fingerprint: fingerprint(),
      command: spec.command ?? (spec.marks === true ? scriptOf(argv) : undefined) ?? argv.join(' '),
      argv,
      cwd: plan.cwd,
      pid,
      streams: plan.streams,
      stdin: plan.stdin,
      ...(plan.terminal && { size: plan.size, terminal: plan.terminal }),
      ...(spec.labels && { labels: spec.labels }),
      ...(spec.lease !== undefined && { lease: spec.lease }),
      ...(spec.keepMs !== undefined && { keepMs: spec.keepMs }),
      ...(spec.hardTimeoutMs !== undefined && { hardTimeoutMs: spec.hardTimeoutMs }),
      ...(decision && { confinement: decision.confinement }),
      startedAtMs: this.options.clock.wallMs(),
      bootId: this.bootId,
    };
  }
}
