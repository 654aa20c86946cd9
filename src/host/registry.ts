// The registry: every process the host knows, found only through its owner, forgotten in time. Ids and keys belong to
// their owner: two owners may use the same ones and neither can tell that the other does.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type Owner, type OwnerUse } from '../protocol/host-api.ts';
import type { Limits } from '../protocol/limits.ts';
import type { Params } from '../protocol/operations.ts';
import type { EndedJournal } from '../journal/ended-journal.ts';
import { Journal } from '../journal/journal.ts';
import type { DiskUsage } from '../journal/disk-usage.ts';
import type { HeldProcess } from './held-process.ts';

export interface RegistryOptions {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly usage: DiskUsage;
  readonly forgotten: (process: HeldProcess) => void;
  /** The journal of one that is forgotten, to be removed. */
  readonly discard: (journal: EndedJournal) => void;
  /** Looks whether a process has settled. */
  readonly look: (process: HeldProcess) => void;
}

/** When a process that is due but not settled is looked at again. */
const LOOK_AGAIN_MS = 60_000;

export class Registry {
  private readonly options: RegistryOptions;
  /** By owner and id. Insertion order is the order of starting. */
  private readonly processes = new Map<string, HeldProcess>();
  private readonly keys = new Map<string, HeldProcess>();
  /** Closed ones, in the order of closing. */
  private readonly closed = new Set<HeldProcess>();
  private readonly sameId = new Map<string, Set<HeldProcess>>();
  private cancelTimer: (() => void) | undefined;
  private timerAtUs = Infinity;

  constructor(options: RegistryOptions) {
    this.options = options;
  }

  /** The only way to reach a process. A foreign id and an unknown one are the same. */
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

  add(process: HeldProcess): void {
    const { owner, id, key } = process.facts;
    this.processes.set(scoped(owner, id), process);
    if (key !== undefined) this.keys.set(scoped(owner, key), process);
    const same = this.sameId.get(id);
    if (same) same.add(process);
    else this.sameId.set(id, new Set([process]));
    if (!process.live) this.noteClosed(process);
  }

  /** `keepBounds` is due then, when there is time for it. */
  noteClosed(process: HeldProcess): void {
    this.closed.add(process);
    this.setTimer(this.expiresUs(process));
  }

  noteSettled(process: HeldProcess): void {
    if (!this.closed.has(process)) return;
    this.setTimer(this.expiresUs(process));
    // It may have been spared only because somebody of it lived.
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

  /** Who has processes here, as far as this owner may see it; by name. */
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

  /** Running ones first, then the newest first; among equals the later start first. */
  list(owner: Owner, filter: Params<'list'>): { found: HeldProcess[]; total: number } {
    const found = Array.from(this.processes.values())
      .toReversed()
      .filter((process) => owner === EVERYONE || process.facts.owner === owner)
      .filter((process) => filter.state === undefined || process.state === filter.state)
      .filter((process) => filter.name === undefined || process.facts.name === filter.name)
      .filter((process) => filter.key === undefined || process.facts.key === filter.key)
      .sort(
        (a, b) =>
          Number(b.outcome === undefined) - Number(a.outcome === undefined) ||
          b.facts.startedAtMs - a.facts.startedAtMs,
      );
    const skip = filter.skip ?? 0;
    return { found: found.slice(skip, skip + (filter.limit ?? found.length)), total: found.length };
  }

  /** Forgets a process and its files. */
  forget(process: HeldProcess): void {
    const { owner, id, key } = process.facts;
    this.closed.delete(process);
    this.processes.delete(scoped(owner, id));
    const same = this.sameId.get(id);
    same?.delete(process);
    if (same?.size === 0) this.sameId.delete(id);
    if (key !== undefined && this.keys.get(scoped(owner, key)) === process)
      this.keys.delete(scoped(owner, key));
    if (process.journal instanceof Journal) process.journal.remove();
    else this.options.discard(process.journal);
    this.options.forgotten(process);
    process.wake();
  }

  /** Applies the limits on number and size: the oldest closed first. */
  keepBounds(): void {
    const { limits, usage } = this.options;
    for (const process of this.closed) {
      if (this.closed.size <= limits.closedCount && usage.bytes <= limits.totalBytes) break;
      // It may have settled without anybody having looked since.
      if (!process.settled) this.options.look(process);
      if (process.settled) this.forget(process);
    }
    if (usage.bytes > limits.totalBytes) this.shrinkLive();
  }

  close(): void {
    this.cancelTimer?.();
  }

  /** When even the live journals are too much together, the largest give from their middle. */
  private shrinkLive(): void {
    const { limits, usage } = this.options;
    const journals = Array.from(this.processes.values(), (process) => process.journal)
      .filter((journal) => journal instanceof Journal)
      .sort((a, b) => b.bytesOnDisk - a.bytesOnDisk);
    for (const journal of journals) {
      while (usage.bytes > limits.totalBytes && journal.shrink() > 0);
      if (usage.bytes <= limits.totalBytes) return;
    }
  }

  /** While a descendant lives, the process stays known: by it the descendant can be found and ended. */
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
      if (at <= now) this.forget(process);
      else next = Math.min(next, at);
    }
    this.timerAtUs = Infinity;
    if (next < Infinity) this.setTimer(next);
  }

  private anyone(id: string): HeldProcess | undefined {
    const [first] = this.sameId.get(id) ?? [];
    return first;
  }
}

function scoped(owner: Owner, name: string): string {
  // The length first: no choice of names can make two pairs look alike.
  return `${owner.length}:${owner}${name}`;
}

/** An id from outside, fit to be repeated in a message. */
function printable(id: string): string {
  const cleaned = id.replace(/[^\x20-\x7e]/g, '?');
  return cleaned.length > 80 ? `${cleaned.slice(0, 77)}...` : cleaned;
}
