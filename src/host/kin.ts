// Kin: whoever came from a process and is alive, and the moment when nobody is. In a keeper the kernel hands every
// orphan to us, so settling is told; inside somebody's program it is not, and while someone waits it is looked for.

import type { Clock } from '../base/clock.ts';
import type { Survivor } from '../protocol/host-api.ts';
import {
  anyLeft,
  belongsTo,
  findDescendants,
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
import { childrenOf, commandOf, ownChildren, type ProcessEntry } from './proc-table.ts';

/** How often settling is looked for where nobody tells us. */
const LOOK_MS = 20;

export class Kin {
  private readonly clock: Clock;
  private readonly told: boolean;
  /** Roots that have not been reaped. */
  private readonly roots = new Map<number, HeldProcess>();
  private readonly unsettled = new Set<HeldProcess>();
  /** Where nobody tells us: whom the last thorough look found. */
  private readonly lastFound = new WeakMap<HeldProcess, readonly number[]>();

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
    // After whoever waits for the exit has been answered.
    setImmediate(() => this.check(process));
  }

  /** Some descendant ended and was reaped. */
  orphanEnded(): void {
    for (const process of this.unsettled) this.check(process);
  }

  /** Read back from disk: its descendants, if any live, are known only by their marker. */
  async restored(process: HeldProcess): Promise<void> {
    process.settled = (await this.find(process)).length === 0;
    if (!process.settled) this.unsettled.add(process);
  }

  forget(process: HeldProcess): void {
    this.unsettled.delete(process);
  }

  /** Looks whether anybody is left, and tells whoever waits if nobody is. */
  check(process: HeldProcess): void {
    if (process.settled || process.rootAlive) return;
    if (this.anyoneLeft(process)) return;
    this.settle(process);
  }

  /** Living descendants, the root not among them, by looking at every process of the machine. */
  async find(process: HeldProcess): Promise<ProcessEntry[]> {
    if (!loadPosix()) return [];
    const found = await findDescendants(familyOf(process));
    this.lastFound.set(
      process,
      found.map(({ pid }) => pid),
    );
    return found;
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
    if (this.told) return stop;
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
    if (this.told) return anyLeft(family, this.roots.keys());
    const found = this.lastFound.get(process) ?? [];
    return groupAlive(family.rootPid) || found.some((pid) => belongsTo(family, pid));
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
