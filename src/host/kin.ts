// Kin: whoever came from a process and is alive, and the moment when nobody is. In a keeper the kernel hands every
// orphan to us, so settling is told; inside somebody's program it is not, and while someone waits it is looked for.

import { openSync, readSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type { Survivor } from '../protocol/host-api.ts';
import {
  anyLeft,
  belongsTo,
  findFamilies,
  groupAlive,
  livingBelow,
  signalGroup,
  signalMembers,
  signalPid,
  type Family,
} from './descendants.ts';
import { MARKER_NAME } from './environment.ts';
import type { HeldProcess } from './held-process.ts';
import { isListening, listeningPorts, type ListeningPort } from './ports.ts';
import { loadPosix } from './posix.ts';
import {
  childrenOf,
  commandOf,
  isAlive,
  ownChildren,
  readEntry,
  type ProcessEntry,
} from './proc-table.ts';

interface Walk {
  readonly asked: HeldProcess[];
  readonly done: Promise<ProcessEntry[][]>;
}

/** How often settling is looked for where nobody tells us. */
const LOOK_MS = 20;

export class Kin {
  private readonly clock: Clock;
  private readonly told: boolean;
  /** Roots that have not been reaped. */
  private readonly roots = new Map<number, HeldProcess>();
  private readonly unsettled = new Set<HeldProcess>();
  private nextWalk: Walk | undefined;
  private walk: Promise<unknown> | undefined;
  private lookSoon: NodeJS.Immediate | undefined;
  private childList: number | undefined;
  /** Room for ten thousand children; more are looked at the long way. */
  private readonly childText = Buffer.alloc(65_536);
  /**
   * Sessions that members made for themselves. One that has shed its marker and lost its parents is still known by
   * the session of the member it came from, as long as it has come to us as an orphan.
   */
  private readonly sessions = new WeakMap<HeldProcess, Set<number>>();
  /** Where nobody tells us: whom the last thorough look found. */
  private readonly lastFound = new WeakMap<HeldProcess, readonly number[]>();
  private readonly looking = new WeakSet<HeldProcess>();

  /** Lost by an earlier keeper and not settled: what lives of them went to init, and nobody tells us of it. */
  private readonly inherited = new Set<HeldProcess>();
  private readonly onSettled: (process: HeldProcess) => void;

  constructor(options: { clock: Clock; told: boolean; settled: (process: HeldProcess) => void }) {
    this.clock = options.clock;
    this.told = options.told;
    this.onSettled = options.settled;
  }

  started(process: HeldProcess): void {
    this.roots.set(process.facts.pid, process);
  }

  exited(process: HeldProcess): void {
    this.roots.delete(process.facts.pid);
    this.unsettled.add(process);
    // Once for all exits of a turn.
    this.lookSoon ??= setImmediate(() => {
      this.lookSoon = undefined;
      this.checkAll();
    });
  }

  /** Some descendant ended and was reaped. */
  orphanEnded(): void {
    this.checkAll();
  }

  private checkAll(): void {
    // Every living descendant of a dead root hangs below an orphan that came to us: mostly there is none.
    const alone = this.told && !this.hasOrphans();
    for (const process of this.unsettled) {
      if (alone && !process.rootAlive && !this.inherited.has(process)) this.settle(process);
      else this.check(process);
    }
  }

  /** Whether this process has a child that is no root: by one read of the list that `ownChildren` opens each time. */
  private hasOrphans(): boolean {
    const { pid } = globalThis.process;
    try {
      this.childList ??= openSync(`/proc/self/task/${pid}/children`, 'r');
    } catch {
      return true;
    }
    const count = readSync(this.childList, this.childText, 0, this.childText.length, 0);
    if (count === this.childText.length) return true;
    const listed = this.childText.toString('latin1', 0, count).split(' ');
    return listed.some((child) => child !== '' && !this.roots.has(Number(child)));
  }

  /** Read back from disk: its descendants, if any live, are known only by their marker. */
  async restored(process: HeldProcess): Promise<void> {
    process.settled = (await this.find(process)).length === 0;
    if (process.settled) return;
    this.unsettled.add(process);
    this.inherited.add(process);
  }

  forget(process: HeldProcess): void {
    this.unsettled.delete(process);
    this.inherited.delete(process);
  }

  /** Whether we are told of every end among its descendants, because they are below us. */
  private toldOf(process: HeldProcess): boolean {
    return this.told && !this.inherited.has(process);
  }

  /**
   * Looks whether anybody is left, and tells whoever waits if nobody is. Where nobody tells us, one that made a session
   * of its own is seen only by a look at the whole machine, which takes a moment: nothing is settled without it.
   */
  check(process: HeldProcess): void {
    if (process.settled || process.rootAlive) return;
    if (this.anyoneLeft(process)) return;
    if (this.toldOf(process) || !loadPosix()) this.settle(process);
    else void this.lookEverywhere(process);
  }

  private async lookEverywhere(process: HeldProcess): Promise<void> {
    if (this.looking.has(process)) return;
    this.looking.add(process);
    try {
      await this.survivors(process);
    } catch {
      // The machine could not be looked at (no descriptor left): not known to be settled, and looked at again.
    } finally {
      this.looking.delete(process);
    }
  }

  /** Living descendants, the root not among them, by looking at every process of the machine. */
  async find(process: HeldProcess): Promise<ProcessEntry[]> {
    if (!loadPosix()) return [];
    const found = await this.walkFor(process);
    this.noteSessions(process, found);
    const known = new Set(found.map(({ pid }) => pid));
    this.lastFound.set(process, [...known]);
    return [...this.straysOf(process).filter(({ pid }) => !known.has(pid)), ...found];
  }

  private noteSessions(process: HeldProcess, found: readonly ProcessEntry[]): void {
    const own = found.filter(({ session }) => session !== process.facts.pid);
    if (own.length === 0) return;
    const sessions = this.sessions.get(process) ?? new Set();
    for (const { session } of own) sessions.add(session);
    this.sessions.set(process, sessions);
  }

  /** Orphans that came to us out of a session that a member had made. */
  private straysOf(process: HeldProcess): ProcessEntry[] {
    const sessions = this.sessions.get(process);
    if (!this.told || !sessions) return [];
    const strays: ProcessEntry[] = [];
    const line = ownChildren().filter((pid) => !this.roots.has(pid));
    for (const pid of line) {
      const entry = readEntry(pid);
      if (!isAlive(entry) || !sessions.has(entry.session)) continue;
      strays.push(entry);
      line.push(...childrenOf(pid));
    }
    return strays;
  }

  /**
   * One walk over /proc serves everybody who asked before it began, and only one is under way: to end a thousand
   * processes one by one would be a thousand walks past a thousand processes.
   */
  private async walkFor(process: HeldProcess): Promise<ProcessEntry[]> {
    this.nextWalk ??= this.planWalk();
    const { asked, done } = this.nextWalk;
    const index = asked.push(process) - 1;
    return (await done)[index] ?? [];
  }

  private planWalk(): Walk {
    const asked: HeldProcess[] = [];
    const done = (this.walk ?? nextTurn()).then(() => {
      this.nextWalk = undefined;
      return findFamilies(asked.map(familyOf));
    });
    this.walk = done.catch(() => undefined);
    return { asked, done };
  }

  /** As `find`, but settles the process when nobody is found. */
  async survivors(process: HeldProcess): Promise<Survivor[]> {
    const found = await this.find(process);
    if (found.length === 0 && !process.rootAlive) this.settle(process);
    return found.map(({ pid }) => ({ pid, command: commandOf(pid) }));
  }

  /**
   * Signals whoever left the group one by one, and then the group by its number while that is certainly ours. In this
   * order: one that has shed its marker is known only by its parents, and the group's signal may end those.
   */
  signal(process: HeldProcess, found: readonly ProcessEntry[], signal: NodeJS.Signals): number[] {
    const { pid } = process.facts;
    const posix = loadPosix();
    const inGroup = process.rootAlive ? found.filter((entry) => entry.group === pid) : [];
    const others = found.filter((entry) => !inGroup.includes(entry));
    const reached = posix ? signalMembers(posix, familyOf(process), others, signal) : [];
    const isStray = (each: number): boolean =>
      this.straysOf(process).some((stray) => stray.pid === each);
    for (const { pid: each } of posix ? others : []) {
      if (reached.includes(each) || !posix) continue;
      if (signalPid(posix, each, signal, isStray) === 'sent') reached.push(each);
    }
    if (!process.rootAlive || !signalGroup(pid, signal)) return reached;
    return [pid, ...inGroup.map((entry) => entry.pid), ...reached];
  }

  /** In a keeper every child comes from something it held: whoever is left when it leaves is ended, kin or not. */
  endStrays(): void {
    const posix = loadPosix();
    if (!posix || !this.told) return;
    for (const pid of ownChildren())
      signalPid(posix, pid, 'SIGKILL', (child) => ownChildren().includes(child));
  }

  /** Calls back whenever settling may have come nearer. The answer stops it. */
  onChange(process: HeldProcess, wake: () => void): () => void {
    const stop = process.onChange(wake);
    if (this.toldOf(process)) return stop;
    const look = (): (() => void) =>
      this.clock.after(LOOK_MS, () => {
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
  listening(process: HeldProcess, port: number | undefined): number | undefined {
    const { pid } = process.facts;
    // Most of the time nobody listens on it at all, which is cheap to see.
    if (port !== undefined && !isListening(port, process.rootAlive ? pid : globalThis.process.pid))
      return undefined;
    const ports = this.ports(process).map((found) => found.port);
    return port === undefined ? ports[0] : ports.find((found) => found === port);
  }

  ports(process: HeldProcess): ListeningPort[] {
    return listeningPorts(this.line(process));
  }

  /** The root, everyone below it by parentage, and orphans of it that came to us: without looking at the whole machine. */
  private line(process: HeldProcess): number[] {
    const { pid } = process.facts;
    const line = process.rootAlive ? [pid] : [];
    for (const each of line) line.push(...childrenOf(each));
    return [...line, ...livingBelow(familyOf(process), this.roots.keys())];
  }

  private anyoneLeft(process: HeldProcess): boolean {
    if (!loadPosix()) return false;
    const family = familyOf(process);
    if (this.toldOf(process))
      return anyLeft(family, this.roots.keys()) || this.straysOf(process).length > 0;
    const found = this.lastFound.get(process) ?? [];
    if (found.some((pid) => belongsTo(family, pid))) return true;
    // The number of an earlier keeper's root may be anybody's group by now.
    return !this.inherited.has(process) && groupAlive(family.rootPid);
  }

  private settle(process: HeldProcess): void {
    if (process.settled) return;
    process.settled = true;
    this.unsettled.delete(process);
    this.onSettled(process);
    process.wake();
  }
}

function familyOf(process: HeldProcess): Family {
  const { pid: rootPid, serial } = process.facts;
  const marker = { name: MARKER_NAME, value: serial };
  return process.rootAlive
    ? { rootPid, marker }
    : { rootPid, marker, reapedAtTicks: process.reapedAtTicks };
}
