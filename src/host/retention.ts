// Retention: which ended processes are deleted, and which live journals are shortened, at the limits on number and
// size. Owners share both (ADR 22): the owner that uses most pays first.

import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import type { Limits } from '../protocol/limits.ts';
import type { DiskUsage } from '../journal/write/disk-usage.ts';
import { Journal } from '../journal/write/journal.ts';
import type { HeldProcess } from './process/held-process.ts';

export interface RetentionOptions {
  readonly limits: Limits;
  readonly usage: DiskUsage;
  readonly all: () => Iterable<HeldProcess>;
  readonly forget: (process: HeldProcess) => void;
  /** Checks whether a process has settled. */
  readonly look: (process: HeldProcess) => void;
}

interface OwnerBytes {
  bytes: number;
  readonly journals: Journal[];
}

/** Unsettled processes of an owner that are checked if it has no settled one. */
const LOOKED_AT = 16;
/**
 * Fraction of the size limit that live journals give up beyond what is needed, so that not every write asks them again.
 */
const SLACK = 1 / 64;
/** Fraction of the size limit above it, for starts of owners below their share. */
const RESERVE = 1 / 4;

export class Retention {
  private readonly options: RetentionOptions;
  /** Closed processes of each owner, in the order of closing. */
  private readonly closed = new Map<Owner, Set<HeldProcess>>();
  private count = 0;
  /** Bytes in use when nothing more could be dropped: no retry before that has increased. */
  private stuckAtBytes: number | undefined;

  constructor(options: RetentionOptions) {
    this.options = options;
  }

  /** A process has closed. */
  add(process: HeldProcess): void {
    const { owner } = process.facts;
    const known = this.closed.get(owner);
    if (known) known.add(process);
    else this.closed.set(owner, new Set([process]));
    this.count += 1;
    this.stuckAtBytes = undefined;
  }

  delete(process: HeldProcess): void {
    const { owner } = process.facts;
    const known = this.closed.get(owner);
    if (known?.delete(process)) this.count -= 1;
    if (known?.size === 0) this.closed.delete(owner);
    this.stuckAtBytes = undefined;
  }

  keepBounds(): void {
    this.keepCount();
    this.keepBytes();
  }

  /**
   * Throws `limit_reached` if the journals use all of the limit, nothing can be dropped, and this owner has its share.
   */
  admit(owner: Owner): void {
    const { usage, limits } = this.options;
    if (usage.bytes <= limits.totalBytes) return;
    this.keepBounds();
    const { bytes } = usage;
    if (bytes <= limits.totalBytes) return;
    const uses = this.bytesByOwner();
    const used = uses.get(owner)?.bytes ?? 0;
    const share = Math.floor(limits.totalBytes / (uses.size + (uses.has(owner) ? 0 : 1)));
    if (used < share && bytes < limits.totalBytes * (1 + RESERVE)) return;
    const problem = `The output of running processes takes ${bytes} bytes on disk, nothing of it can be dropped, and the limit "totalBytes" is ${limits.totalBytes}. Owner "${owner}" has ${used}; its share is ${share}.`;
    throw new HoldfastError('limit_reached', problem, { limit: 'totalBytes', used, share });
  }

  private keepCount(): void {
    const { closedCount } = this.options.limits;
    while (this.count > closedCount) {
      const process = this.oldestOfLargest(closedCount / this.closed.size);
      if (!process) return;
      this.options.forget(process);
    }
  }

  /**
   * Deletes the closed processes above the share of the owner with most; if those cannot be deleted, of the next owner.
   */
  private oldestOfLargest(share: number): HeldProcess | undefined {
    const tried = new Set<Set<HeldProcess>>();
    for (;;) {
      let most: Set<HeldProcess> | undefined;
      for (const processes of this.closed.values())
        if (processes.size > share && !tried.has(processes) && isBefore(processes, most))
          most = processes;
      const found = most && this.forgettable(most);
      if (!most || found) return found;
      tried.add(most);
    }
  }

  /** A process with a living descendant is kept, because it is needed to find and end that. */
  private forgettable(processes: Iterable<HeldProcess>): HeldProcess | undefined {
    const unsettled: HeldProcess[] = [];
    for (const process of processes) {
      if (process.settled) return process;
      if (unsettled.length < LOOKED_AT) unsettled.push(process);
    }
    // It may have settled without a check since.
    return unsettled.find((process) => {
      this.options.look(process);
      return process.settled;
    });
  }

  private keepBytes(): void {
    const { limits, usage } = this.options;
    if (usage.bytes <= limits.totalBytes) this.stuckAtBytes = undefined;
    const quiet = (this.stuckAtBytes ?? 0) + limits.totalBytes * SLACK;
    if (usage.bytes <= (this.stuckAtBytes === undefined ? limits.totalBytes : quiet)) return;
    const uses = this.bytesByOwner();
    while (usage.bytes > limits.totalBytes) {
      const payer = largest(uses);
      if (payer === undefined) {
        this.stuckAtBytes = usage.bytes;
        return;
      }
      const [owner, use] = payer;
      const before = usage.bytes;
      if (!this.pay(owner, use)) uses.delete(owner);
      use.bytes -= before - usage.bytes;
    }
  }

  /** Ended processes first, then the middle of live journals, then their beginnings; false if nothing is left. */
  private pay(owner: Owner, { journals }: OwnerBytes): boolean {
    const ended = this.closed.get(owner);
    const process = ended && this.forgettable(ended);
    if (process) {
      this.options.forget(process);
      return true;
    }
    const { limits, usage } = this.options;
    const heads = [limits.journalHeadBytes, usage.shareOfJournal / 4, 0];
    return heads.some((headBytes) => this.shrink(journals, headBytes));
  }

  /** Each of the largest journals drops one segment; false if none can. */
  private shrink(journals: Journal[], headBytes: number): boolean {
    const { limits, usage } = this.options;
    const enough = limits.totalBytes * (1 - SLACK);
    journals.sort((a, b) => b.bytesOnDisk - a.bytesOnDisk);
    const most = journals[0]?.bytesOnDisk ?? 0;
    let gained = 0;
    for (const journal of journals) {
      if (usage.bytes <= enough || (gained > 0 && journal.bytesOnDisk < most / 2)) break;
      gained += journal.shrink(headBytes);
    }
    return gained > 0;
  }

  private bytesByOwner(): Map<Owner, OwnerBytes> {
    const uses = new Map<Owner, OwnerBytes>();
    for (const { facts, journal } of this.options.all()) {
      const use = uses.get(facts.owner) ?? { bytes: 0, journals: [] };
      uses.set(facts.owner, use);
      use.bytes += journal.bytesOnDisk;
      if (journal instanceof Journal) use.journals.push(journal);
    }
    return uses;
  }
}

/** The owner with more of them, or with as many and an earlier closed one. */
function isBefore(a: Set<HeldProcess>, b: Set<HeldProcess> | undefined): boolean {
  if (!b || a.size !== b.size) return !b || a.size > b.size;
  return closedAt(a) < closedAt(b);
}

function closedAt(processes: Iterable<HeldProcess>): number {
  const [first] = processes;
  return first?.closedAtUs ?? 0;
}

function largest(uses: ReadonlyMap<Owner, OwnerBytes>): [Owner, OwnerBytes] | undefined {
  let most: [Owner, OwnerBytes] | undefined;
  for (const entry of uses) if (!most || entry[1].bytes > most[1].bytes) most = entry;
  return most;
}
