// Tracks the living descendants of each process. A keeper is a subreaper: the kernel gives it every orphan and tells it
// of their ends. Inside somebody's program, and for what an earlier keeper left, /proc is polled while someone waits.

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
import { findBelow } from './tree-search.ts';
import { endStrays, type StraysEnd } from './strays.ts';

/** What is asked of a process here. */
export interface Tracked extends Owner {
  settled: boolean;
  wake(): void;
  onChange(listener: () => void): () => void;
}

export interface TrackerOptions<P extends Tracked> {
  readonly clock: Clock;
  /** This process is a subreaper, and `reaped` is called for every child of it that is no more. */
  readonly isSubreaper: boolean;
  /** Whether a child of this process was started by it and has not been reaped. */
  readonly isRoot: (pid: number) => boolean;
  readonly settled: (process: P) => void;
  readonly table?: ProcessTable;
}

/** Living descendants of a process, the root not among them. */
interface Search {
  readonly found: ProcessEntry[];
  /** Why nobody could be looked for. */
  readonly unsearched?: 'too_many_files';
  /** Somebody could not be identified: nobody being found does not mean that nobody is left. */
  readonly isUnsure?: boolean;
}

/** How often settling is looked for where nobody tells us. */
const LOOK_MS = 20;
/** Orphans of nobody are looked at for so long in one turn of the event loop. */
const LOOKING_MS = 20;

export class DescendantTracker<P extends Tracked> {
  private readonly options: TrackerOptions<P>;
  private readonly table: ProcessTable;
  readonly orphans: Orphans<P>;
  readonly owners: Owners<P>;
  /** Their root has been reaped. */
  private readonly unsettled = new Set<P>();
  /** Those of them that may have settled: to be looked at. */
  private readonly due = new Set<P>();
  private lookSoon: NodeJS.Immediate | undefined;
  private readonly again: PatientLook;
  private readonly walks: SharedWalks;
  /** Where nobody tells us: whom the last thorough look found. */
  private readonly lastFound = new WeakMap<P, readonly number[]>();
  private readonly looking = new WeakSet<P>();
  /** Left by an earlier keeper, and not settled: what lives of them went to init, and nobody tells us of its end. */
  private readonly inherited = new Set<P>();

  constructor(options: TrackerOptions<P>) {
    this.options = options;
    this.table = options.table ?? systemTable;
    this.walks = new SharedWalks(this.table);
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
    // Where nobody tells us, the others may have settled as well.
    if (!this.options.isSubreaper) for (const other of this.unsettled) this.lookAt(other);
  }

  /** A child of this process, a root or an orphan, has been reaped. */
  reaped(pid: number): void {
    if (!this.options.isSubreaper) return;
    for (const owner of this.orphans.reaped(pid)) this.lookAt(owner);
    // It may have been what made the last look unsure.
    if (this.due.size > 0) this.soon();
  }

  private lookAt(process: P): void {
    if (process.settled || process.rootAlive || this.inherited.has(process)) return;
    this.due.add(process);
    this.soon();
  }

  /** Once for all that happens in one turn of the event loop. */
  private soon(): void {
    this.lookSoon ??= setImmediate(() => {
      this.lookSoon = undefined;
      this.lookAtDue();
    });
  }

  /** `again`: at those, too, of which nobody tells us. */
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

  /** Nobody whose orphan lives can have settled; the end of that orphan is told. */
  private dropHeld(): void {
    for (const process of this.due)
      if (process.settled || this.orphans.hasAny(process) === 'yes') this.due.delete(process);
  }

  /** False when no descriptor was free: nothing is known then. */
  private lookAtOrphans(again: boolean): boolean {
    try {
      this.orphans.look({ again, mostMs: LOOKING_MS });
      return true;
    } catch (error) {
      if (!isShortage(error)) throw error;
      return false;
    }
  }

  /** Read back from disk: whoever lives of them is known only by the marker. One walk over /proc serves all. */
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

  /** Whether we are told of every end among its descendants, because they are below us. */
  private isReported(process: P): boolean {
    return this.options.isSubreaper && !this.inherited.has(process);
  }

  /**
   * Looks whether anybody is left, and tells whoever waits if nobody is. Where nobody tells us, one that made a session
   * of its own is seen only by a look at the whole machine, which takes a moment: nothing is settled without it.
   */
  check(process: P): void {
    if (process.settled || process.rootAlive) return;
    if (this.isReported(process)) this.lookAt(process);
    else if (!loadPosix()) this.settle(process);
    else void this.lookEverywhere(process);
  }

  /** Looks for the descendants of everybody whose root has ended, where nobody tells us of their ends. */
  async checkUnreported(): Promise<void> {
    const unreported = [...this.unsettled].filter((process) => !this.isReported(process));
    await Promise.all(unreported.map((process) => this.lookEverywhere(process)));
  }

  private async lookEverywhere(process: P): Promise<void> {
    if (this.looking.has(process)) return;
    this.looking.add(process);
    try {
      // Where the machine cannot be looked at, it is not known to be settled.
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
    // The number of an earlier keeper's root may be anybody's group by now.
    return !this.inherited.has(process) && groupAlive(family.rootPid);
  }

  /** Living descendants, the root not among them, children before their parents. */
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
    const found = await findBelow(tops, this.table);
    return found.filter(({ pid }) => pid !== root || !process.rootAlive);
  }

  /** As `find`; where no descriptor is free to look, `unsearched` says so, and nobody is found. */
  async search(process: P): Promise<Search> {
    if (process.settled) return { found: [] };
    try {
      return await this.findAll(process);
    } catch (error) {
      if (!isShortage(error)) throw error;
      return { found: [], unsearched: 'too_many_files' };
    }
  }

  /** Whoever is alive, the root among them. Settles the process when that is nobody. */
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
   * Signals whoever left the group one by one, and then the group by its number while that is certainly ours. In this
   * order: one that has shed its marker is known only by its parents, and the group's signal may end those.
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

  /** In a keeper every child comes from something it held: every process that is left when it leaves is ended, tracked or not. */
  async endStrays(): Promise<StraysEnd> {
    if (!this.options.isSubreaper) return { ended: 0, survivors: [] };
    return endStrays(this.options.clock, this.table);
  }

  /** Calls back whenever settling may have come nearer. The answer stops it. */
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
    // Most of the time nobody listens on it at all, which is cheap to see.
    if (port !== undefined && !isListening(port, netPid, tables)) return undefined;
    const pids = this.knownPids(process) ?? [];
    const ports = listeningPorts(pids, tables).map((found) => found.port);
    return port === undefined ? ports[0] : ports.find((found) => found === port);
  }

  ports(process: P): ListeningPort[] {
    const pids = this.knownPids(process);
    if (pids) return listeningPorts(pids);
    const problem = `No file descriptor is free to look at the descendants of process ${process.facts.serial}.`;
    throw new HoldfastError('too_many_files', problem);
  }

  /** The root, its orphans, and everyone below these; undefined when no descriptor was free to look. */
  private knownPids(process: P): number[] | undefined {
    try {
      if (this.options.isSubreaper) this.orphans.look();
      const root = process.rootAlive ? [process.facts.pid] : [];
      const found = livingBelow([...root, ...this.orphans.of(process)], this.table);
      return found.map(({ pid }) => pid);
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

/** Whether the search has shown that nobody is left. */
function isNobody({ found, unsearched, isUnsure }: Search): boolean {
  return found.length === 0 && unsearched === undefined && !isUnsure;
}

export function withCommand(pid: number): Survivor {
  return { pid, command: commandOf(pid) };
}
