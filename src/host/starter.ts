// Starting a process: the checks in their order, the key or id that makes a repeated start attach instead, and the
// journal that exists before the child does.

import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { BufferPool } from '../base/buffer-pool.ts';
import type { Clock } from '../base/clock.ts';
import { errnoOf, type Disk } from '../base/disk.ts';
import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import type { Limits } from '../protocol/limits.ts';
import type { StartSpec } from '../protocol/operations.ts';
import type { LaunchPlan } from '../protocol/process.ts';
import { Journal } from '../journal/journal.ts';
import type { DiskUsage } from '../journal/journal-file.ts';
import type { ChildListener } from './child.ts';
import type { Children } from './children.ts';
import { startedBody, type ProcessFacts } from './facts.ts';
import { HeldProcess, type ProcessSetting, type ProcessWatcher } from './held-process.ts';
import { inheritable } from './environment.ts';
import { launchPlan, type StartSurroundings, type Surroundings } from './launch-plan.ts';
import type { Registry } from './registry.ts';
import { TurnGate } from './turn-gate.ts';

export interface StarterOptions {
  readonly registry: Registry;
  readonly children: Children;
  readonly surroundings: Surroundings;
  readonly folder: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly pool: BufferPool;
  readonly usage: DiskUsage;
  readonly limits: Limits;
  readonly watcher: ProcessWatcher;
  /** Secret of this folder: without it a fingerprint tells nothing about the values it was made of. */
  readonly fingerprintKey: Buffer;
}

export interface StartAnswer {
  readonly process: HeldProcess;
  readonly attached: boolean;
}

/** A journal that belongs to no process yet. Left behind by a killed keeper it is empty, and removed. */
interface Spare {
  readonly serial: string;
  readonly journal: Journal;
}

interface PendingStart {
  readonly fingerprint: string;
  readonly done: Promise<HeldProcess>;
}

export class Starter {
  private readonly options: StarterOptions;
  private readonly gate: TurnGate;
  private readonly pending = new Map<string, PendingStart>();
  private readonly bootId = readBootId();
  private readonly surroundings: StartSurroundings;
  private spare: Spare | undefined;
  private closed = false;

  constructor(options: StarterOptions) {
    this.options = options;
    this.gate = new TurnGate(options.limits.startsPerTurn);
    const { surroundings } = options;
    this.surroundings = { ...surroundings, inheritable: inheritable(surroundings.env) };
  }

  async start(owner: Owner, spec: StartSpec): Promise<StartAnswer> {
    const claim = claimOf(owner, spec);
    // An id that the host gives is never asked for again by a start.
    if (claim === undefined)
      return { process: await this.launch(owner, spec, ''), attached: false };
    const fingerprint = fingerprintOf(spec, this.options.fingerprintKey);
    for (;;) {
      const known = this.known(owner, spec, fingerprint);
      if (known) return { process: known, attached: true };
      const pending = this.pending.get(claim);
      if (pending === undefined)
        return { process: await this.launchAs(claim, owner, spec, fingerprint), attached: false };
      if (pending.fingerprint !== fingerprint) throw conflict(spec);
      // When the first start fails its claim is free again, and this one takes its place.
      await pending.done.catch(() => undefined);
    }
  }

  /** The start of this id that is under way: whoever chose the id may name it before the start is answered. */
  underWay(owner: Owner, id: string): Promise<unknown> | undefined {
    return this.pending.get(claimOf(owner, { id }) ?? '')?.done;
  }

  private known(owner: Owner, spec: StartSpec, fingerprint: string): HeldProcess | undefined {
    const { registry } = this.options;
    const byKey = spec.key === undefined ? undefined : registry.byKey(owner, spec.key);
    const byId = spec.id === undefined ? undefined : registry.byId(owner, spec.id);
    const found = byKey ?? byId;
    if (found && (found.facts.fingerprint !== fingerprint || (byKey && byId && byKey !== byId)))
      throw conflict(spec);
    return found;
  }

  private async launchAs(
    claim: string,
    owner: Owner,
    spec: StartSpec,
    fingerprint: string,
  ): Promise<HeldProcess> {
    const done = this.launch(owner, spec, fingerprint);
    this.pending.set(claim, { fingerprint, done });
    try {
      return await done;
    } finally {
      this.pending.delete(claim);
    }
  }

  private async launch(owner: Owner, spec: StartSpec, fingerprint: string): Promise<HeldProcess> {
    const { registry, limits } = this.options;
    await this.gate.pass();
    if (registry.size - registry.endedCount >= limits.liveCount) {
      throw new HoldfastError(
        'limit_reached',
        `${limits.liveCount} processes are running, which is the limit "liveCount".`,
      );
    }
    const { serial, journal } = this.takeSpare();
    const plan = this.plan(spec, serial, journal);
    const process = await this.startChild({ owner, spec, fingerprint, serial, plan, journal });
    registry.add(process);
    return process;
  }

  /**
   * The journal of the next start. To make a file costs as much as to start a program, and more on ext4 where files
   * are deleted all the time; so it is made when a process has closed, and nobody waits.
   */
  prepare(): void {
    if (this.spare || this.closed) return;
    try {
      this.spare = this.newSpare();
    } catch {
      // The next start tries again, and tells.
    }
  }

  close(): void {
    this.closed = true;
    this.spare?.journal.remove();
    this.spare = undefined;
  }

  private takeSpare(): Spare {
    const { spare } = this;
    this.spare = undefined;
    return spare ?? this.newSpare();
  }

  private newSpare(): Spare {
    const serial = randomId();
    return { serial, journal: this.openJournal(serial) };
  }

  private plan(spec: StartSpec, serial: string, journal: Journal): LaunchPlan {
    try {
      const plan = launchPlan(spec, this.surroundings, serial);
      journal.begin();
      return plan;
    } catch (error) {
      // A refused start has used nothing: the next one can have it.
      if (this.spare) journal.remove();
      else this.spare = { serial, journal };
      throw error instanceof HoldfastError ? error : storageError(error);
    }
  }

  private openJournal(serial: string): Journal {
    const { disk, folder, usage, limits, clock, pool } = this.options;
    const journal = new Journal({
      place: { disk, folder, id: serial, usage },
      limits,
      clock,
      pool,
    });
    try {
      journal.open();
    } catch (error) {
      throw storageError(error);
    }
    return journal;
  }

  private async startChild(start: {
    readonly owner: Owner;
    readonly spec: StartSpec;
    readonly fingerprint: string;
    readonly serial: string;
    readonly plan: LaunchPlan;
    readonly journal: Journal;
  }): Promise<HeldProcess> {
    const { spec, plan, journal } = start;
    const { clock, limits, watcher } = this.options;
    const late = new LateListener();
    try {
      const started = this.options.children.start(plan, late);
      const child = started instanceof Promise ? await started : started;
      const facts = this.facts(start, child.pid);
      const setting: ProcessSetting = {
        clock,
        watcher,
        writeIds: limits.writeIds,
        inputBytes: limits.inputBytes,
        recordInput: spec.recordInput ?? plan.streams === 'pty',
      };
      const process = new HeldProcess(facts, journal, setting);
      process.attach(child);
      journal.append({ kind: 'started', body: startedBody(facts) });
      journal.flush();
      late.target = process;
      return process;
    } catch (error) {
      journal.remove();
      throw error;
    }
  }

  private facts(
    start: { owner: Owner; spec: StartSpec; fingerprint: string; serial: string; plan: LaunchPlan },
    pid: number,
  ): ProcessFacts {
    const { owner, spec, fingerprint, serial, plan } = start;
    return {
      id: spec.id ?? serial,
      serial,
      owner,
      ...(spec.name !== undefined && { name: spec.name }),
      ...(spec.key !== undefined && { key: spec.key }),
      fingerprint,
      command: spec.command ?? plan.argv.join(' '),
      argv: plan.argv,
      cwd: plan.cwd,
      pid,
      streams: plan.streams,
      stdin: plan.stdin,
      ...(plan.streams === 'pty' && { size: plan.size }),
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
function fingerprintOf(spec: StartSpec, key: Buffer): string {
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
  return createHmac('sha256', key).update(JSON.stringify(inputs)).digest('hex');
}

function sorted(values: Record<string, string> | undefined): [string, string][] {
  return Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}

function storageError(error: unknown): HoldfastError {
  const errno = errnoOf(error);
  const full = errno === 'ENOSPC' || errno === 'EDQUOT' || errno === 'EFBIG';
  const reason = error instanceof Error ? error.message : String(error);
  return full
    ? new HoldfastError('storage_full', `No room for the journal of a new process: ${reason}`, {
        errno,
      })
    : new HoldfastError(
        'storage_unavailable',
        `The journal of a new process cannot be written: ${reason}`,
        { errno },
      );
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
