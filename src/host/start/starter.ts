// Starts processes: the checks in order, the key or id that makes a repeated start attach, and the journal that exists
// before the child.

import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
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
import { HeldProcess, type ProcessDeps, type ProcessWatcher } from '../process/held-process.ts';
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
import { idTaken, type Registry } from '../registry.ts';
import { scriptOf } from '../terminal/shell-marks.ts';
import { inputsOf } from './start-inputs.ts';
import { SpareJournals, storageError, type Spare, type SpareOptions } from './spare-journals.ts';
import { endUnrecorded } from '../descendants/unrecorded-starts.ts';

export interface StarterOptions extends SpareOptions {
  readonly registry: Registry;
  /** Registers a started process and watches it. Throws if its id is taken. */
  readonly begin: (process: HeldProcess) => void;
  readonly leases: Pick<Leases, 'covers'>;
  readonly children: Children;
  readonly surroundings: InheritedEnvironment;
  readonly watcher: ProcessWatcher;
  /** Secret of this folder: without it a fingerprint reveals nothing about its inputs. */
  readonly fingerprintKey: Buffer;
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
/** Of one owner: one thread of libuv's four is left to the others. A thread is held until the program has begun. */
const SPAWNS_UNDER_WAY = 3;

export class Starter {
  private readonly options: StarterOptions;
  /** A burst of starts delays neither other work nor another owner's start. */
  private readonly turns: FairTurns;
  private readonly spawns = new FairTurns({ perOwner: SPAWNS_UNDER_WAY });
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
    this.spares = new SpareJournals(options);
    const { children, clock, limits } = options;
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
      launched = this.planAndStart({ owner, spec, fingerprint });
      this.launching.add(launched);
      return await launched;
    } finally {
      if (launched) this.launching.delete(launched);
      this.turns.done(owner);
    }
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
    const { owner, spec, fingerprint } = request;
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
    return this.startChild({ owner, spec, fingerprint, plan, serial, journal });
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
    const { spec, plan, journal } = start;
    const { clock, limits, watcher, registry } = this.options;
    let child: Child | undefined;
    try {
      child = await this.spawns.run(start.owner, () => this.spawn(plan));
      const facts = this.facts(start, child.pid);
      const setting: ProcessDeps = {
        clock,
        watcher,
        writeIds: limits.writeIds,
        inputBytes: limits.inputBytes,
        recordInput: spec.recordInput ?? plan.streams === 'pty',
      };
      const process = new HeldProcess(facts, journal, setting);
      process.attach(child, plan);
      journal.append({ kind: 'started', body: startedBody(facts) });
      journal.flush();
      child.listen(process);
      this.options.begin(process);
      return process;
    } catch (error) {
      registry.live.delete(start.owner);
      // A process that cannot be recorded must not run, because no caller could find it.
      if (child) await endUnrecorded(child, start.serial);
      journal.remove();
      throw error;
    }
  }

  private async spawn(plan: LaunchPlan): Promise<Child> {
    try {
      return await this.options.children.start(plan);
    } catch (error) {
      const isFull = error instanceof HoldfastError && error.code === 'too_many_files';
      // Give up spare journals for the program's descriptors.
      if (!isFull || !this.spares.shed()) throw error;
      return this.options.children.start(plan);
    }
  }

  private facts(start: PlannedStart, pid: number): ProcessFacts {
    const { owner, spec, fingerprint, serial, plan } = start;
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
      startedAtMs: this.options.clock.wallMs(),
      bootId: this.bootId,
    };
  }
}

function hostClosed(): HoldfastError {
  return new HoldfastError('host_closed', 'The host has been closed.');
}

function noLease(name = ''): HoldfastError {
  const problem = `The lease "${name}" is not open: it ran out, was ended, or never was opened.`;
  return new HoldfastError('lease_ended', problem, { lease: name });
}

/** The key and the id that no other start may use while this one is pending. */
function claimsOf(owner: Owner, { key, id }: StartSpec): string[] {
  return [
    ...(key === undefined ? [] : [`key ${owner.length}:${owner}${key}`]),
    ...(id === undefined ? [] : [idClaim(owner, id)]),
  ];
}

function idClaim(owner: Owner, id: string): string {
  return `id ${owner.length}:${owner}${id}`;
}

function conflict({ key, id }: StartSpec, aboutId: boolean): HoldfastError {
  if (aboutId || key === undefined) return idTaken(id ?? '');
  const message = `The key "${key}" was used for a start with different inputs.`;
  return new HoldfastError('key_conflict', message);
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
