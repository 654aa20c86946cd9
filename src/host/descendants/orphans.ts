// The orphans that the kernel reparented to this process, a subreaper, and their owners. The owner of an orphan never
// changes, because its pid cannot be reused before we reap it. So each exit costs one read of the children list, and
// nothing per known orphan.

import type { Clock } from '../../base/clock.ts';
import { livingBelow } from './descendants.ts';
import { MARKER_NAME } from '../start/environment.ts';
import { addTo, removeFrom, type OwnerKey } from './membership.ts';
import { isAlive, type ProcessEntry, type ProcessTable } from '../../system/proc-table.ts';

interface OrphansOptions<Owner> {
  readonly clock: Clock;
  readonly table: ProcessTable;
  /** Whether this child was started here and is not an orphan. */
  readonly isRoot: (pid: number) => boolean;
  /** Its owner by its own session or marker. "unknown" during exec. */
  readonly ownersOf: (entry: ProcessEntry) => ReadonlySet<Owner> | 'unknown';
  readonly adopted: (owner: Owner, entry: ProcessEntry) => void;
}

/** A process has its own marker and perhaps those of processes around it. More are not ours. */
const MOST_MARKERS = 16;
/** How often the list is read again because it grew during the search. */
const MOST_READS = 100;

export class Orphans<Owner> {
  private readonly options: OrphansOptions<Owner>;
  /** Children that were in the list when it was read, and have not been reaped since. */
  private readonly seen = new Set<number>();
  private readonly owners = new Map<number, ReadonlySet<Owner>>();
  private readonly byOwner = new Map<Owner, Set<number>>();
  /** Without an owner so far. Checked at every search: they are new, or a process there is in exec. */
  private readonly unowned = new Set<number>();
  /** Without an owner. Checked again when a member with one of these keys becomes known. */
  private readonly quiet = new Map<number, readonly OwnerKey[]>();
  private readonly quietByKey = new Map<OwnerKey, Set<number>>();
  /**
   * Orphans without an owner that have processes of these owners below them. The owners can only become fewer, without
   * a notice: such orphans are checked from time to time, the longest ago first.
   */
  private readonly above = new Map<number, ReadonlySet<Owner>>();
  private readonly aboveByOwner = new Map<Owner, Set<number>>();
  private unsure = false;
  /** Some were left for the next search, because this one took too long. */
  isUnfinished = false;

  constructor(options: OrphansOptions<Owner>) {
    this.options = options;
  }

  of(owner: Owner): ReadonlySet<number> {
    return this.byOwner.get(owner) ?? new Set();
  }

  /** Processes of this owner below orphans without an owner. */
  hidden(owner: Owner): number[] {
    const { table, ownersOf } = this.options;
    const isOwn = (entry: ProcessEntry): boolean => {
      const owners = ownersOf(entry);
      return owners !== 'unknown' && owners.has(owner);
    };
    const tops = this.aboveByOwner.get(owner) ?? [];
    return livingBelow(tops, table)
      .filter(isOwn)
      .map(({ pid }) => pid);
  }

  /** Undefined when that is not known, or when it is of several. */
  ownerOf(pid: number): Owner | undefined {
    const [first, second] = this.owners.get(pid) ?? [];
    return second ? undefined : first;
  }

  /** As of the last look. "perhaps": look again. */
  hasAny(owner: Owner): 'yes' | 'no' | 'perhaps' {
    if (this.byOwner.has(owner)) return 'yes';
    return this.unsure || this.aboveByOwner.has(owner) ? 'perhaps' : 'no';
  }

  /** A child of this process was reaped. Returns the owner if it was an orphan. */
  reaped(pid: number): Iterable<Owner> {
    this.seen.delete(pid);
    this.unowned.delete(pid);
    this.wake(pid);
    const owners = this.owners.get(pid);
    if (!owners) return [];
    this.owners.delete(pid);
    for (const owner of owners) {
      const left = this.byOwner.get(owner);
      left?.delete(pid);
      if (left?.size === 0) this.byOwner.delete(owner);
    }
    return owners;
  }

  /** This key identifies a member from now on: orphans without an owner that carry it are checked again. */
  known(key: OwnerKey): void {
    for (const pid of this.quietByKey.get(key) ?? []) {
      this.wake(pid);
      this.unowned.add(pid);
    }
  }

  /**
   * Finds the owners of orphans that came since the last search. `again`: also checks whether processes are left below
   * orphans that had some. What exceeds `mostMs` is left for the next search.
   */
  look({ again = false, mostMs = Infinity } = {}): void {
    const { clock, table } = this.options;
    const untilUs = clock.nowUs() + mostMs * 1000;
    for (let read = 0; read < MOST_READS; read += 1) {
      const fresh = table.newChildren((pid) => this.seen.has(pid));
      for (const pid of fresh) {
        this.seen.add(pid);
        this.unowned.add(pid);
      }
      this.unsure = false;
      const examined = this.unowned.size;
      this.isUnfinished = !this.examineAll(this.unowned, untilUs);
      if (this.isUnfinished) this.unsure = true;
      else if (again && read === 0) this.examineAll([...this.above.keys()], untilUs);
      // A process below an orphan without an owner becomes our child when its parent ends, perhaps since the list was
      // read.
      if (examined === 0 || this.isUnfinished || (read > 0 && fresh.length === 0)) return;
    }
    this.unsure = true;
  }

  /** False if the time was over before the last of them. */
  private examineAll(pids: Iterable<number>, untilUs: number): boolean {
    for (const pid of pids) {
      this.examine(pid);
      if (this.options.clock.nowUs() > untilUs) return false;
    }
    return true;
  }

  private examine(pid: number): void {
    const { table, isRoot, ownersOf } = this.options;
    this.wake(pid);
    this.unowned.add(pid);
    if (isRoot(pid)) {
      this.unowned.delete(pid);
      return;
    }
    const entry = table.readEntry(pid);
    // A zombie has no session or marker to read; its reaping is reported later.
    const owners = isAlive(entry) ? ownersOf(entry) : 'unknown';
    if (entry && owners !== 'unknown' && owners.size > 0) this.adopt(entry, owners);
    else if (owners === 'unknown' || !isAlive(table.readEntry(pid))) this.unsure = true;
    else this.quieten(pid);
  }

  private quieten(top: number): void {
    const { table, ownersOf } = this.options;
    const members = livingBelow([top], table);
    const below = new Set<Owner>();
    let isUnsure = false;
    for (const entry of members) {
      const owners = ownersOf(entry);
      if (owners === 'unknown' || !isAlive(table.readEntry(entry.pid))) isUnsure = true;
      else for (const owner of owners) below.add(owner);
    }
    const keys = this.keysOf(below.size > 0 ? members : members.slice(0, 1));
    if (isUnsure || !keys) {
      this.unsure = true;
      return;
    }
    this.unowned.delete(top);
    this.quiet.set(top, keys);
    for (const key of keys) addTo(this.quietByKey, key, top);
    if (below.size > 0) this.above.set(top, below);
    for (const owner of below) addTo(this.aboveByOwner, owner, top);
  }

  /** Undefined while one of them is in exec. */
  private keysOf(members: readonly ProcessEntry[]): OwnerKey[] | undefined {
    const keys = new Set<OwnerKey>();
    for (const { pid, session } of members) {
      const markers = this.options.table.markersOf(pid, MARKER_NAME);
      if (markers === 'unknown') return undefined;
      for (const key of [session, ...markers.slice(0, MOST_MARKERS)]) keys.add(key);
    }
    return [...keys];
  }

  private wake(pid: number): void {
    for (const key of this.quiet.get(pid) ?? []) removeFrom(this.quietByKey, key, pid);
    this.quiet.delete(pid);
    for (const owner of this.above.get(pid) ?? []) removeFrom(this.aboveByOwner, owner, pid);
    this.above.delete(pid);
  }

  private adopt(entry: ProcessEntry, owners: ReadonlySet<Owner>): void {
    this.unowned.delete(entry.pid);
    this.owners.set(entry.pid, owners);
    for (const owner of owners) {
      const own = this.byOwner.get(owner);
      if (own) own.add(entry.pid);
      else this.byOwner.set(owner, new Set([entry.pid]));
      this.options.adopted(owner, entry);
    }
  }
}
