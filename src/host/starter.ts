// Starting a process: the checks in their order, the key or id that makes a repeated start attach instead, and the
// journal that exists before the child does.

import { readFileSync } from 'node:fs';
import { keyedSum } from '../base/keyed-sum.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import type { StartSpec } from '../protocol/operations.ts';
import type { LaunchPlan } from '../protocol/process.ts';
import type { EndedJournal } from '../journal/ended-journal.ts';
import type { Journal } from '../journal/journal.ts';
import type { ChildListener } from './child.ts';
import type { Children } from './children.ts';
import { startedBody, type ProcessFacts } from './facts.ts';
import { HeldProcess, type ProcessSetting, type ProcessWatcher } from './held-process.ts';
import {
  launchPlan,
  startSurroundings,
  type StartSurroundings,
  type Surroundings,
} from './launch-plan.ts';
import type { Registry } from './registry.ts';
import { SpareJournals, storageError, type Spare, type SpareOptions } from './spare-journals.ts';
import { TurnGate } from './turn-gate.ts';

export interface StarterOptions extends SpareOptions {
  readonly registry: Registry;
  readonly children: Children;
  readonly surroundings: Surroundings;
  readonly watcher: ProcessWatcher;
  /** Secret of this folder: without it a fingerprint tells nothing about the values it was made of. */
  readonly fingerprintKey: Buffer;
}

export interface StartAnswer {
  readonly process: HeldProcess;
  readonly attached: boolean;
}

/** Made when it is needed: for most starts that is when the child is running already. */
type Fingerprint = () => string;

interface PendingStart {
  readonly fingerprint: Fingerprint;
  readonly done: Promise<HeldProcess>;
}

export class Starter {
  private readonly options: StarterOptions;
  private readonly gate: TurnGate;
  private readonly pending = new Map<string, PendingStart>();
  private readonly bootId = readBootId();
  private readonly surroundings: StartSurroundings;
  private readonly spares: SpareJournals;
  private readonly sum: (text: string) => string;
  /** Starts that have passed every check and are not in the registry yet. */
  private readonly launching = new Set<Promise<unknown>>();
  private closed = false;

  constructor(options: StarterOptions) {
    this.options = options;
    this.gate = new TurnGate(options.limits.startsPerTurn);
    this.spares = new SpareJournals(options);
    this.sum = keyedSum(options.fingerprintKey);
    this.surroundings = startSurroundings(options.surroundings);
  }

  async start(owner: Owner, spec: StartSpec): Promise<StartAnswer> {
    const claim = claimOf(owner, spec);
    // An id that the host gives is never asked for again by a start.
    if (claim === undefined)
      return { process: await this.launch(owner, spec, () => ''), attached: false };
    let made: string | undefined;
    const fingerprint = (): string => (made ??= this.sum(inputsOf(spec)));
    for (;;) {
      const known = this.known(owner, spec, fingerprint);
      if (known) return { process: known, attached: true };
      const pending = this.pending.get(claim);
      if (pending === undefined)
        return { process: await this.launchAs(claim, owner, spec, fingerprint), attached: false };
      if (pending.fingerprint() !== fingerprint()) throw conflict(spec);
      // When the first start fails its claim is free again, and this one takes its place.
      await pending.done.catch(() => undefined);
    }
  }

  /** The start of this id that is under way: whoever chose the id may name it before the start is answered. */
  underWay(owner: Owner, id: string): Promise<unknown> | undefined {
    return this.pending.get(claimOf(owner, { id }) ?? '')?.done;
  }

  private known(owner: Owner, spec: StartSpec, fingerprint: Fingerprint): HeldProcess | undefined {
    const { registry } = this.options;
    const byKey = spec.key === undefined ? undefined : registry.byKey(owner, spec.key);
    const byId = spec.id === undefined ? undefined : registry.byId(owner, spec.id);
    const found = byKey ?? byId;
    if (found && (found.facts.fingerprint !== fingerprint() || (byKey && byId && byKey !== byId)))
      throw conflict(spec);
    return found;
  }

  private async launchAs(
    claim: string,
    owner: Owner,
    spec: StartSpec,
    fingerprint: Fingerprint,
  ): Promise<HeldProcess> {
    const done = this.launch(owner, spec, fingerprint);
    this.pending.set(claim, { fingerprint, done });
    try {
      return await done;
    } finally {
      this.pending.delete(claim);
    }
  }

  private async launch(
    owner: Owner,
    spec: StartSpec,
    fingerprint: Fingerprint,
  ): Promise<HeldProcess> {
    const { registry, limits } = this.options;
    const turn = this.gate.pass();
    if (turn) await turn;
    if (this.closed) throw new HoldfastError('host_closed', 'The host has been closed.');
    const live = registry.size - registry.endedCount + this.launching.size;
    if (live >= limits.liveCount) {
      throw new HoldfastError(
        'limit_reached',
        `${limits.liveCount} processes are running, which is the limit "liveCount".`,
      );
    }
    const spare = this.spares.take();
    const plan = this.plan(spec, spare);
    const { serial, journal } = spare;
    const launched = this.startChild({ owner, spec, fingerprint, plan, serial, journal });
    this.launching.add(launched);
    try {
      return await launched;
    } finally {
      this.launching.delete(launched);
    }
  }

  /** To be called when there is time: what the next start will need. */
  prepare(): void {
    this.spares.prepare();
  }

  /** The journal of a process that is forgotten. */
  discard(ended: EndedJournal): void {
    this.spares.discard(ended);
  }

  /** Resolves when no start is under way any more; none begins afterwards. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.launching);
    await this.spares.close();
  }

  private plan(spec: StartSpec, spare: Spare): LaunchPlan {
    try {
      const plan = launchPlan(spec, this.surroundings, spare.serial);
      spare.journal.begin();
      return plan;
    } catch (error) {
      this.spares.giveBack(spare);
      throw error instanceof HoldfastError ? error : storageError(error);
    }
  }

  private async startChild(start: {
    readonly owner: Owner;
    readonly spec: StartSpec;
    readonly fingerprint: Fingerprint;
    readonly serial: string;
    readonly plan: LaunchPlan;
    readonly journal: Journal;
  }): Promise<HeldProcess> {
    const { spec, plan, journal } = start;
    const { clock, limits, watcher, registry } = this.options;
    const late = new LateListener();
    try {
      const child = await this.options.children.start(plan, late);
      const facts = this.facts(start, child.pid);
      const setting: ProcessSetting = {
        clock,
        watcher,
        writeIds: limits.writeIds,
        inputBytes: limits.inputBytes,
        recordInput: spec.recordInput ?? plan.streams === 'pty',
      };
      const process = new HeldProcess(facts, journal, setting);
      process.attach(child, plan.nonce);
      journal.append({ kind: 'started', body: startedBody(facts) });
      journal.flush();
      late.target = process;
      registry.add(process);
      return process;
    } catch (error) {
      journal.remove();
      throw error;
    }
  }

  private facts(
    start: {
      owner: Owner;
      spec: StartSpec;
      fingerprint: Fingerprint;
      serial: string;
      plan: LaunchPlan;
    },
    pid: number,
  ): ProcessFacts {
    const { owner, spec, fingerprint, serial, plan } = start;
    return {
      id: spec.id ?? serial,
      serial,
      owner,
      ...(spec.name !== undefined && { name: spec.name }),
      ...(spec.key !== undefined && { key: spec.key }),
      fingerprint: fingerprint(),
      command: spec.command ?? (plan.shownArgv ?? plan.argv).join(' '),
      argv: plan.shownArgv ?? plan.argv,
      cwd: plan.cwd,
      pid,
      streams: plan.streams,
      stdin: plan.stdin,
      ...(plan.terminal && { size: plan.size, terminal: plan.terminal }),
      ...(spec.labels && { labels: spec.labels }),
      ...(spec.keepMs !== undefined && { keepMs: spec.keepMs }),
      ...(spec.hardTimeoutMs !== undefined && { hardTimeoutMs: spec.hardTimeoutMs }),
      startedAtMs: this.options.clock.wallMs(),
      bootId: this.bootId,
    };
  }
}

/** Stands in until the process exists: a child tells nothing before the turn in which it was started is over. */
class LateListener implements ChildListener {
  target: ChildListener | undefined;
  output(...args: Parameters<ChildListener['output']>): void {
    this.target?.output(...args);
  }
  exited(...args: Parameters<ChildListener['exited']>): void {
    this.target?.exited(...args);
  }
  ended(): void {
    this.target?.ended();
  }
}

function claimOf(owner: Owner, spec: StartSpec): string | undefined {
  if (spec.key !== undefined) return `key ${owner.length}:${owner}${spec.key}`;
  return spec.id === undefined ? undefined : `id ${owner.length}:${owner}${spec.id}`;
}

function conflict(spec: StartSpec): HoldfastError {
  if (spec.key === undefined)
    return new HoldfastError('id_taken', `The id "${spec.id ?? ''}" belongs to another start.`);
  return new HoldfastError(
    'key_conflict',
    `The key "${spec.key}" was used for a start with different inputs.`,
  );
}

/** Of everything that decides what runs. Environment values are among it, so only a keyed sum is ever kept. */
function inputsOf(spec: StartSpec): string {
  const {
    command,
    argv,
    cwd,
    environment,
    env,
    streams,
    stdin,
    size,
    term,
    hardTimeoutMs,
    labels,
  } = spec;
  const inputs = [
    command,
    spec.arg0 === undefined ? argv : { argv, arg0: spec.arg0 },
    cwd,
    environment,
    sorted(env),
    streams,
    stdin,
    size,
    term,
    hardTimeoutMs,
    sorted(labels),
  ];
  return JSON.stringify(inputs);
}

function sorted(values: Record<string, string> | undefined): [string, string][] {
  return Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
