// The orphans that the kernel gave to this process, a subreaper, and whose they are. Once known, an orphan's owner stays
// known: its number cannot be given away before it is reaped here. So each end costs one read of the children list, and
// nothing per orphan that was known before.

import type { Clock } from '../../base/clock.ts';
import { livingBelow } from './descendants.ts';
import { MARKER_NAME } from '../start/environment.ts';
import { addTo, removeFrom, type OwnerKey } from './membership.ts';
import { isAlive, type ProcessEntry, type ProcessTable } from '../../system/proc-table.ts';

interface OrphansOptions<Owner> {
  readonly clock: Clock;
  readonly table: ProcessTable;
  /** Whether this child was started here, and is no orphan. */
  readonly isRoot: (pid: number) => boolean;
  /** Whose it is by its own session or marker. "unknown" while it is in the moment of exec. */
  readonly ownersOf: (entry: ProcessEntry) => ReadonlySet<Owner> | 'unknown';
  readonly adopted: (owner: Owner, entry: ProcessEntry) => void;
}

/** A process has the marker of its own and perhaps of those it is nested in. More are not from us. */
const MOST_MARKERS = 16;
/** How often the list is read again because it grew while orphans of nobody were looked at. */
const MOST_READS = 100;

export class Orphans<Owner> {
  private readonly options: OrphansOptions<Owner>;
  /** Children that were in the list when it was read, and that have not been reaped since. */
  private readonly seen = new Set<number>();
  private readonly owners = new Map<number, ReadonlySet<Owner>>();
  private readonly byOwner = new Map<Owner, Set<number>>();
  /** Nobody's so far. They are looked at again each time: they are new, or somebody there is in the moment of exec. */
  private readonly unowned = new Set<number>();
  /** Nobody's. They are looked at again when somebody becomes known who has one of these keys. */
  private readonly quiet = new Map<number, readonly OwnerKey[]>();
  private readonly quietByKey = new Map<OwnerKey, Set<number>>();
  /**
   * Those of them that have processes of these owners below. The owners can only become fewer, and nobody tells when: such
   * orphans are looked at now and then, longest ago first.
   */
  private readonly above = new Map<number, ReadonlySet<Owner>>();
  private readonly aboveByOwner = new Map<Owner, Set<number>>();
  private unsure = false;
  /** Some were left for the next look, because this one took long. */
  isUnfinished = false;

  constructor(options: OrphansOptions<Owner>) {
    this.options = options;
  }

  of(owner: Owner): ReadonlySet<number> {
    return this.byOwner.get(owner) ?? new Set();
  }

  /** Processes of this owner below orphans that are nobody's. */
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

  /** A child of this process is no more. The answer is whose orphan it was. */
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

  /** Somebody is known by this from now on: orphans of nobody that carry it are looked at again. */
  known(key: OwnerKey): void {
    for (const pid of this.quietByKey.get(key) ?? []) {
      this.wake(pid);
      this.unowned.add(pid);
    }
  }

  /**
   * Finds out whose the orphans are that came since the last look. `again`: also whether anybody is still there below those
   * that are known to have some. What takes longer than `mostMs` is left for the next look.
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
      // One below an orphan of nobody becomes our child when its parent ends, perhaps since the list was read.
      if (examined === 0 || this.isUnfinished || (read > 0 && fresh.length === 0)) return;
    }
    this.unsure = true;
  }

  /** False when the time was over before the last of them. */
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
    // A zombie tells nothing about itself, and its end is still to be told to us.
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

  /** Undefined while one of them is in the moment of exec. */
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
