// The registry: every process that the host knows, found only through its owner. Ids and keys belong to their owner:
// two owners may use the same ones without noticing each other.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type Owner, type OwnerUse } from '../protocol/host-api.ts';
import { DEFAULT_LIST_ROWS, type Limits } from '../protocol/limits.ts';
import type { Params } from '../protocol/operations.ts';
import type { EndedJournal } from '../journal/read/ended-journal.ts';
import type { Journal } from '../journal/write/journal.ts';
import type { DiskUsage } from '../journal/write/disk-usage.ts';
import type { HeldProcess } from './process/held-process.ts';
import { Retention } from './retention.ts';
import { Shares } from './shares.ts';

export interface RegistryOptions {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly usage: DiskUsage;
  readonly forgotten: (process: HeldProcess, reason: string, erases: boolean) => void;
  /** Removes the journal of a deleted process; returns the problem if the disk refuses. */
  readonly discard: (journal: Journal | EndedJournal) => HoldfastError | undefined;
  /** Checks whether a process has settled. */
  readonly look: (process: HeldProcess) => void;
}

/** When a process that is due for deletion but not settled is checked again. */
const LOOK_AGAIN_MS = 60_000;

export class Registry {
  private readonly options: RegistryOptions;
  /** By owner and id, in the order of starting. */
  private readonly processes = new Map<string, HeldProcess>();
  private readonly keys = new Map<string, HeldProcess>();
  /** In the order of closing. */
  private readonly closed = new Set<HeldProcess>();
  readonly retention: Retention;
  /** Live processes, and starts that have passed every check: the starter counts them. */
  readonly live: Shares;
  private readonly sameId = new Map<string, HeldProcess[]>();
  private cancelTimer: (() => void) | undefined;
  private timerAtUs = Infinity;
  private lastNumber = 0;

  constructor(options: RegistryOptions) {
    this.options = options;
    const { limits, usage, look } = options;
    this.live = new Shares('liveCount', limits.liveCount);
    this.retention = new Retention({
      limits,
      usage,
      look,
      all: () => this.all(),
      forget: (process) => this.forget(process),
    });
  }

  /**
   * The only way to reach a process. A foreign id looks like an unknown one. For EVERYONE, an id that two owners chose
   * is ambiguous.
   */
  find(owner: Owner, id: string): HeldProcess {
    const found = owner === EVERYONE ? this.anyone(id) : this.processes.get(scoped(owner, id));
    if (!found)
      throw new HoldfastError('not_found', `Process "${printable(id)}" not found.`, {
        id: printable(id),
      });
    return found;
  }

  byId(owner: Owner, id: string): HeldProcess | undefined {
    return this.processes.get(scoped(owner, id));
  }

  byKey(owner: Owner, key: string): HeldProcess | undefined {
    return this.keys.get(scoped(owner, key));
  }

  /** Looks at all of them: only for a marker that was found on a program. */
  bySerial(serial: string): HeldProcess | undefined {
    for (const process of this.processes.values())
      if (process.facts.serial === serial) return process;
    return undefined;
  }

  /** Refuses a second process with the same id: one of the two could not be found or ended. */
  add(process: HeldProcess): void {
    const { owner, id, key } = process.facts;
    const name = scoped(owner, id);
    if (this.processes.has(name)) throw idTaken(id);
    process.number = ++this.lastNumber;
    this.processes.set(name, process);
    if (key !== undefined) this.keys.set(scoped(owner, key), process);
    const same = this.sameId.get(id);
    if (same) same.push(process);
    else this.sameId.set(id, [process]);
    if (!process.live) this.addClosed(process);
    this.options.usage.journals = this.live.total;
  }

  /** The caller then calls `keepBounds` when it has time. */
  noteClosed(process: HeldProcess): void {
    // It was removed before its end could be written, or was never added.
    if (process.forgotten || process.number === 0) return;
    this.live.delete(process.facts.owner);
    this.options.usage.journals = this.live.total;
    this.addClosed(process);
  }

  private addClosed(process: HeldProcess): void {
    this.closed.add(process);
    this.retention.add(process);
    this.setTimer(this.expiresUs(process));
  }

  noteSettled(process: HeldProcess): void {
    if (!this.closed.has(process)) return;
    this.setTimer(this.expiresUs(process));
    // A living descendant may have been the only reason to keep it.
    this.keepBounds();
  }

  all(): Iterable<HeldProcess> {
    return this.processes.values();
  }

  get size(): number {
    return this.processes.size;
  }

  get endedCount(): number {
    return this.closed.size;
  }

  /** Owners that have processes, as far as this owner may see; sorted by name. */
  owners(seenBy: Owner): OwnerUse[] {
    const uses = new Map<Owner, { owner: Owner; live: number; ended: number; bytes: number }>();
    for (const process of this.all()) {
      const { owner } = process.facts;
      if (seenBy !== EVERYONE && seenBy !== owner) continue;
      const use = uses.get(owner) ?? { owner, live: 0, ended: 0, bytes: 0 };
      uses.set(owner, use);
      use[process.live ? 'live' : 'ended'] += 1;
      use.bytes += process.info().bytes.retained;
    }
    return Array.from(uses.values()).sort((a, b) => (a.owner < b.owner ? -1 : 1));
  }

  /**
   * Running processes first, then the newest; among equals the later start first. With `before` in the order of
   * starting alone, which does not change between two pages.
   */
  list(owner: Owner, filter: Params<'list'>): { found: HeldProcess[]; total: number } {
    const { before, skip = 0, limit = DEFAULT_LIST_ROWS, startedBefore = Infinity } = filter;
    const found = Array.from(this.processes.values())
      .toReversed()
      .filter((process) => owner === EVERYONE || process.facts.owner === owner)
      .filter((process) => filter.state === undefined || process.state === filter.state)
      .filter((process) => filter.name === undefined || process.facts.name === filter.name)
      .filter((process) => filter.key === undefined || process.facts.key === filter.key)
      .filter(({ facts }) => filter.label === undefined || hasLabel(facts.labels, filter.label))
      .filter(({ facts }) => facts.startedAtMs < startedBefore)
      .filter((process) => before === undefined || process.number < before);
    if (before === undefined) found.sort(inOrderOfLists);
    return { found: found.slice(skip, skip + limit), total: found.length };
  }

  /**
   * Deletes a process and its files. Returns the reason if a file remains. Its completion keeps the last lines that were
   * printed unless it `erases` them: a subscriber may not have read them.
   */
  forget(
    process: HeldProcess,
    reason = 'beyond the bounds on number or size',
    erases = false,
  ): HoldfastError | undefined {
    const { owner, id, key } = process.facts;
    if (this.closed.delete(process)) this.retention.delete(process);
    else this.live.delete(owner);
    this.options.usage.journals = this.live.total;
    this.processes.delete(scoped(owner, id));
    const others = this.sameId.get(id)?.filter((other) => other !== process) ?? [];
    if (others.length > 0) this.sameId.set(id, others);
    else this.sameId.delete(id);
    if (key !== undefined && this.keys.get(scoped(owner, key)) === process)
      this.keys.delete(scoped(owner, key));
    const problem = this.options.discard(process.journal);
    this.options.forgotten(process, problem ? `${reason}; ${problem.message}` : reason, erases);
    process.forget();
    return problem;
  }

  /** Applies the limits on number and size. */
  keepBounds(): void {
    this.retention.keepBounds();
  }

  close(): void {
    this.cancelTimer?.();
  }

  /** A process with a living descendant is kept, because it is needed to find and end that. */
  private expiresUs(process: HeldProcess): number {
    const keepMs = process.facts.keepMs ?? this.options.limits.closedAgeMs;
    const due = (process.closedAtUs ?? Infinity) + keepMs * 1000;
    return process.settled ? due : Math.max(due, this.options.clock.nowUs() + LOOK_AGAIN_MS * 1000);
  }

  private setTimer(atUs: number): void {
    if (atUs >= this.timerAtUs) return;
    const { clock } = this.options;
    this.cancelTimer?.();
    this.timerAtUs = atUs;
    const ms = Math.max(1, Math.ceil((atUs - clock.nowUs()) / 1000));
    this.cancelTimer = clock.after(ms, () => this.expire());
  }

  private expire(): void {
    const now = this.options.clock.nowUs();
    let next = Infinity;
    for (const process of this.closed) {
      const at = this.expiresUs(process);
      if (at <= now) this.forget(process, 'its time was over', process.facts.keepMs === undefined);
      else next = Math.min(next, at);
    }
    this.timerAtUs = Infinity;
    if (next < Infinity) this.setTimer(next);
  }

  private anyone(id: string): HeldProcess | undefined {
    const [first, second] = this.sameId.get(id) ?? [];
    if (second) {
      const message = `Process id "${id}" is used by several owners: name the owner.`;
      throw new HoldfastError('ambiguous', message, { id });
    }
    return first;
  }
}

function inOrderOfLists(a: HeldProcess, b: HeldProcess): number {
  const runningFirst = Number(b.outcome === undefined) - Number(a.outcome === undefined);
  return runningFirst || b.facts.startedAtMs - a.facts.startedAtMs;
}

function scoped(owner: Owner, name: string): string {
  // The length first, so that no two pairs of names give the same text.
  return `${owner.length}:${owner}${name}`;
}

export function idTaken(id: string): HoldfastError {
  return new HoldfastError('id_taken', `The id "${id}" belongs to another start.`);
}

/** An id from outside, safe to repeat in a message. */
function printable(id: string): string {
  const cleaned = id.replace(/[^\x20-\x7e]/g, '?');
  return cleaned.length > 80 ? `${cleaned.slice(0, 77)}...` : cleaned;
}

/** Compares whole texts, because both sides of the "=" may contain one. */
function hasLabel(labels: Readonly<Record<string, string>> = {}, wanted: string): boolean {
  return Object.entries(labels).some(
    ([name, value]) => name === wanted || `${name}=${value}` === wanted,
  );
}
