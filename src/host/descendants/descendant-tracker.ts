// Tracks the living descendants of each process. A keeper is a subreaper: the kernel reparents every orphan to it and
// reports their exits. When embedded, and for descendants of an earlier keeper, we poll /proc while someone waits.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Survivor } from '../../protocol/host-api.ts';
import {
  belongsTo,
  groupAlive,
  isForeign,
  livingBelow,
  signalGroup,
  signalMembers,
  type Family,
  type Reach,
} from './descendants.ts';
import { PatientLook } from './backoff.ts';
import { Orphans } from './orphans.ts';
import { familyOf, Owners, type Owner } from './membership.ts';
import { isListening, listeningPorts } from '../../system/ports.ts';
import type { ListeningPort, SocketTables } from '../../system/ports.ts';
import { loadPosix } from '../../system/posix.ts';
import {
  commandOf,
  isShortage,
  systemTable,
  type ProcessEntry,
  type ProcessTable,
} from '../../system/proc-table.ts';
import { SharedWalks } from './shared-walks.ts';
import { TreeSearches } from './tree-search.ts';
import { endStrays, type StraysEnd } from './strays.ts';

/** What the tracker needs of a process. */
export interface Tracked extends Owner {
  settled: boolean;
  wake(): void;
  onChange(listener: () => void): () => void;
}

export interface TrackerOptions<P extends Tracked> {
  readonly clock: Clock;
  /** This process is a subreaper, and `reaped` is called for every reaped child. */
  readonly isSubreaper: boolean;
  /** Whether a child was started by this process and has not been reaped. */
  readonly isRoot: (pid: number) => boolean;
  readonly settled: (process: P) => void;
  readonly table?: ProcessTable;
}

/** Living descendants of a process, without the root. */
interface Search {
  readonly found: ProcessEntry[];
  /** Why the search failed. */
  readonly unsearched?: 'too_many_files';
  /** A process could not be identified: an empty result does not mean that none is left. */
  readonly isUnsure?: boolean;
}

/** How often we poll where exits are not reported. */
const LOOK_MS = 20;
/** Time slice for orphans without an owner in one turn of the event loop. */
const LOOKING_MS = 20;

export class DescendantTracker<P extends Tracked> {
  private readonly options: TrackerOptions<P>;
  private readonly table: ProcessTable;
  readonly orphans: Orphans<P>;
  readonly owners: Owners<P>;
  /** Processes whose root has been reaped. */
  private readonly unsettled = new Set<P>();
  /** Those that may have settled, to be checked. */
  private readonly due = new Set<P>();
  private lookSoon: NodeJS.Immediate | undefined;
  private readonly again: PatientLook;
  private readonly walks: SharedWalks;
  private readonly trees: TreeSearches;
  /** Where exits are not reported: the result of the last thorough search. */
  private readonly lastFound = new WeakMap<P, readonly number[]>();
  private readonly looking = new WeakSet<P>();
  /**
   * Unsettled processes of an earlier keeper: their descendants were reparented to init, so their exits are not
   * reported.
   */
  private readonly inherited = new Set<P>();

  constructor(options: TrackerOptions<P>) {
    this.options = options;
    this.table = options.table ?? systemTable;
    this.walks = new SharedWalks(this.table);
    this.trees = new TreeSearches(this.table);
    this.again = new PatientLook(options.clock, LOOK_MS, () => this.lookAtDue(true));
    this.owners = new Owners<P>(this.table, (key) => this.orphans.known(key));
    this.orphans = new Orphans<P>({
      clock: options.clock,
      table: this.table,
      isRoot: options.isRoot,
      ownersOf: (entry) => this.owners.of(entry),
      adopted: (owner, { session }) => this.owners.noteSession(owner, session),
    });
  }

  started(process: P): void {
    this.owners.add(process);
  }

  exited(process: P): void {
    this.unsettled.add(process);
    this.lookAt(process);
    // Where exits are not reported, other processes may have settled too.
    if (!this.options.isSubreaper) for (const other of this.unsettled) this.lookAt(other);
  }

  /** A child of this process, a root or an orphan, has been reaped. */
  reaped(pid: number): void {
    if (!this.options.isSubreaper) return;
    for (const owner of this.orphans.reaped(pid)) this.lookAt(owner);
    // It may have made the last check uncertain.
    if (this.due.size > 0) this.soon();
  }

  private lookAt(process: P): void {
    if (process.settled || process.rootAlive || this.inherited.has(process)) return;
    this.due.add(process);
    this.soon();
  }

  /** Once for everything that happens in one turn of the event loop. */
  private soon(): void {
    this.lookSoon ??= setImmediate(() => {
      this.lookSoon = undefined;
      this.lookAtDue();
    });
  }

  /** `again`: also processes whose exits are not reported. */
  private lookAtDue(again = false): void {
    if (!this.options.isSubreaper) {
      for (const process of this.due) this.check(process);
      this.due.clear();
      return;
    }
    this.dropHeld();
    if (this.due.size === 0) return;
    const known = this.lookAtOrphans(again);
    this.dropHeld();
    for (const process of known ? this.due : [])
      if (this.orphans.hasAny(process) === 'no') this.settle(process);
    if (this.due.size === 0) this.again.stop();
    else if (known && this.orphans.isUnfinished) this.soon();
    else this.again.later();
  }

  /** A process with a living orphan cannot have settled; that orphan's exit will be reported. */
  private dropHeld(): void {
    for (const process of this.due)
      if (process.settled || this.orphans.hasAny(process) === 'yes') this.due.delete(process);
  }

  /** False if no descriptor was free: then nothing is known. */
  private lookAtOrphans(again: boolean): boolean {
    try {
      this.orphans.look({ again, mostMs: LOOKING_MS });
      return true;
    } catch (error) {
      if (!isShortage(error)) throw error;
      return false;
    }
  }

  /** For recovered processes: only the marker identifies their descendants. One walk over /proc serves all. */
  async restored(processes: readonly P[]): Promise<void> {
    for (const process of processes) this.inherited.add(process);
    const searches = await Promise.all(processes.map((process) => this.search(process)));
    for (const [index, process] of processes.entries()) {
      process.settled = searches[index] !== undefined && isNobody(searches[index]);
      if (process.settled) this.inherited.delete(process);
      else this.unsettled.add(process);
    }
  }

  forget(process: P): void {
    this.unsettled.delete(process);
    this.due.delete(process);
    this.inherited.delete(process);
    this.owners.remove(process);
  }

  /** Whether all its descendants are below us, so that their exits are reported. */
  private isReported(process: P): boolean {
    return this.options.isSubreaper && !this.inherited.has(process);
  }

  /**
   * Checks whether any descendant is left, and wakes the waiters if none is. Where exits are not reported, a descendant
   * in its own session is found only by a search of the whole machine, so nothing settles without one.
   */
  check(process: P): void {
    if (process.settled || process.rootAlive) return;
    if (this.isReported(process)) this.lookAt(process);
    else if (!loadPosix()) this.settle(process);
    else void this.lookEverywhere(process);
  }

  /** Searches the descendants of all processes whose root has exited, where exits are not reported. */
  async checkUnreported(): Promise<void> {
    const unreported = [...this.unsettled].filter((process) => !this.isReported(process));
    await Promise.all(unreported.map((process) => this.lookEverywhere(process)));
  }

  private async lookEverywhere(process: P): Promise<void> {
    if (this.looking.has(process)) return;
    this.looking.add(process);
    try {
      // If the search fails, the process does not count as settled.
      if (!this.isAnyoneLeft(process)) await this.survivors(process);
    } catch (error) {
      if (!isShortage(error)) throw error;
    } finally {
      this.looking.delete(process);
    }
  }

  private isAnyoneLeft(process: P): boolean {
    const family = this.familyOf(process);
    const found = this.lastFound.get(process) ?? [];
    if (found.some((pid) => belongsTo(family, pid, this.table))) return true;
    // The pid of an earlier keeper's root may be another group's number by now.
    return !this.inherited.has(process) && groupAlive(family.rootPid);
  }

  /** Living descendants without the root, children before their parents. */
  async find(process: P): Promise<ProcessEntry[]> {
    return (await this.findAll(process)).found;
  }

  private async findAll(process: P): Promise<Search> {
    if (!loadPosix()) return { found: [] };
    const search = this.isReported(process)
      ? { found: await this.findInTree(process) }
      : await this.walks.find(() => this.familyOf(process));
    const { found } = search;
    for (const { session } of found) this.owners.noteSession(process, session);
    this.lastFound.set(
      process,
      found.map(({ pid }) => pid),
    );
    return search;
  }

  /** As a subreaper we have all of them below us. */
  private async findInTree(process: P): Promise<ProcessEntry[]> {
    const { pid: root } = process.facts;
    const tops = (): number[] => {
      this.orphans.look({ mostMs: LOOKING_MS });
      const started = process.rootAlive ? [root] : [];
      return [...started, ...this.orphans.of(process), ...this.orphans.hidden(process)];
    };
    const found = await this.trees.find(tops);
    return found.filter(({ pid }) => pid !== root || !process.rootAlive);
  }

  /** As `find`; if no descriptor is free, `unsearched` says so and the result is empty. */
  async search(process: P): Promise<Search> {
    if (process.settled) return { found: [] };
    try {
      return await this.findAll(process);
    } catch (error) {
      if (!isShortage(error)) throw error;
      return { found: [], unsearched: 'too_many_files' };
    }
  }

  /** All living processes with the root. Settles the process if there are none. */
  async survivors(process: P): Promise<{
    readonly survivors: Survivor[];
    readonly unsearched?: 'too_many_files';
  }> {
    const search = await this.search(process);
    const { found, unsearched } = search;
    if (isNobody(search) && !process.rootAlive) {
      if (!this.isReported(process) || this.orphans.hasAny(process) === 'no') this.settle(process);
      else this.lookAt(process);
    }
    const root = process.rootAlive ? [process.facts.pid] : [];
    const pids = [...root, ...found.map(({ pid }) => pid)];
    return { survivors: pids.map(withCommand), ...(unsearched && { unsearched }) };
  }

  /**
   * Signals the descendants outside the group one by one, then the group by its number while that is certainly ours. In
   * this order, because a descendant without marker is known only by its parents, which the group's signal may end.
   */
  signal(process: P, found: readonly ProcessEntry[], signal: NodeJS.Signals): Reach {
    const { pid } = process.facts;
    const posix = loadPosix();
    const isInGroup = (entry: ProcessEntry): boolean => process.rootAlive && entry.group === pid;
    const others = found.filter((entry) => !isInGroup(entry));
    const { reached, refused } = posix
      ? signalMembers(posix, this.familyOf(process), others, signal)
      : { reached: [], refused: [] };
    if (!process.rootAlive) return { reached, refused };
    const group = [pid, ...found.filter(isInGroup).map((entry) => entry.pid)];
    const delivery = signalGroup(pid, signal);
    if (delivery === 'gone') return { reached, refused };
    const foreign = new Set(delivery === 'sent' ? group.filter(isForeign) : group);
    for (const each of foreign) refused.push({ pid: each, reason: 'not_permitted' });
    return { reached: [...group.filter((each) => !foreign.has(each)), ...reached], refused };
  }

  /**
   * In a keeper every child comes from one of its processes: ends everything that is left when it exits, tracked or
   * not.
   */
  async endStrays(): Promise<StraysEnd> {
    if (!this.options.isSubreaper) return { ended: 0, survivors: [] };
    return endStrays(this.options.clock, this.table);
  }

  /** Calls back whenever a process may have settled. Returns a function that unsubscribes. */
  onChange(process: P, wake: () => void): () => void {
    const stop = process.onChange(wake);
    if (this.isReported(process)) return stop;
    const look = (): (() => void) =>
      this.options.clock.after(LOOK_MS, () => {
        cancel = look();
        this.check(process);
      });
    let cancel = look();
    return () => {
      stop();
      cancel();
    };
  }

  /** A port that the process or a descendant listens on: this one, or any. */
  listening(process: P, port: number | undefined, tables: SocketTables): number | undefined {
    const netPid = process.rootAlive ? process.facts.pid : globalThis.process.pid;
    // Usually no process listens on it at all, which is cheap to see.
    if (port !== undefined && !isListening(port, netPid, tables)) return undefined;
    const pids = (this.known(process) ?? []).map(({ pid }) => pid);
    return listeningPorts(pids, tables).find((found) => found.port === (port ?? found.port))?.port;
  }

  ports(process: P): ListeningPort[] {
    return listeningPorts(this.members(process).map(({ pid }) => pid));
  }

  /** The root, if it is alive, and its descendants. */
  members(process: P): ProcessEntry[] {
    const found = this.known(process);
    if (found) return found;
    const problem = `No file descriptor is free to look at the descendants of process ${process.facts.serial}.`;
    throw new HoldfastError('too_many_files', problem);
  }

  /** The root, its orphans, and everything below these; undefined if no descriptor was free. */
  private known(process: P): ProcessEntry[] | undefined {
    try {
      if (this.options.isSubreaper) this.orphans.look();
      const root = process.rootAlive ? [process.facts.pid] : [];
      return livingBelow([...root, ...this.orphans.of(process)], this.table);
    } catch (error) {
      if (!isShortage(error)) throw error;
      return undefined;
    }
  }

  private settle(process: P): void {
    if (process.settled) return;
    process.settled = true;
    this.forget(process);
    this.options.settled(process);
    process.wake();
  }

  private familyOf(process: P): Family {
    return { ...familyOf(process), isAnchor: (pid) => this.orphans.of(process).has(pid) };
  }
}

/** Whether the search has shown that none is left. */
export function isNobody({ found, unsearched, isUnsure }: Search): boolean {
  return found.length === 0 && unsearched === undefined && !isUnsure;
}

export function withCommand(pid: number): Survivor {
  return { pid, command: commandOf(pid) };
}
