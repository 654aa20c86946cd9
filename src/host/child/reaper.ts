// The reaper: learns how children ended, each once, and never takes a child that is somebody else's.

import { constants } from 'node:os';

import type { ExitStatus } from './child.ts';
import type { Posix } from '../../system/posix.ts';
import { PosixError } from '../../system/posix-library.ts';

export interface ReaperOptions {
  readonly posix: Posix;
  /**
   * True in a process that is subreaper and starts no children through Node: orphans that it inherits are reaped too.
   * False inside somebody's program, whose own children must be left to it.
   */
  readonly adopts: boolean;
  readonly onOrphan?: (pid: number, status: ExitStatus) => void;
  /** A child or an orphan has been reaped: from now on its number may be anybody's. */
  readonly onReaped?: (pid: number) => void;
}

type Ended = (status: ExitStatus) => void;

/** A child that another thread is starting. Its number is not known yet, and it may end before it is. */
export interface Birth {
  /**
   * `ended` comes later from the event loop, once; with neither code nor signal if somebody else reaped the child.
   */
  register(pid: number, ended: Ended): void;
  /** It was not started after all. */
  failed(): void;
}

/** As long as a child is this young, others are likely to be started with it. */
const RECENT_SPAWN_MS = 20;
/** Each takes about a microsecond. */
const LOOKS = 3;
/** As long as a process may take between closing its streams and its end; longer for one that goes on without them. */
const MOMENT_US = 200;
// The longest delay that Node's timers take, about 25 days.
const longestDelayMs = 2 ** 31 - 1;

const signalNames = new Map<number, string>();
for (const [name, value] of Object.entries(constants.signals)) {
  if (!signalNames.has(value)) signalNames.set(value, name);
}

/** The wait status of the kernel, in words. The core-dump flag (0x80) is left out. */
export function decodeStatus(status: number): ExitStatus {
  const signal = status & 0x7f;
  if (signal === 0) return { code: (status >> 8) & 0xff };
  // glibc keeps 32 and 33 to itself: SIGRTMIN is 34.
  return { signal: signalNames.get(signal) ?? `SIGRTMIN+${signal - 34}` };
}

export class Reaper {
  private readonly posix: Posix;
  private readonly adopts: boolean;
  private readonly onOrphan: (pid: number, status: ExitStatus) => void;
  private readonly onReaped: (pid: number) => void;
  private readonly children = new Map<number, Ended>();
  private readonly onSignal = (): void => this.sweep();
  /** A SIGCHLD listener does not keep Node's loop alive; this does, while there are children. */
  private readonly anchor = setInterval(() => {}, longestDelayMs).unref();
  private closed = false;
  private births = 0;
  /** The last sweep stopped early at an unknown zombie; sweep again once pending spawns are registered. */
  private sweptInPart = false;
  private newest = { pid: 0, atMs: 0 };
  /** Births that are not over, oldest first. */
  private readonly expected = new Set<number>();
  /** Children that ended and are not known, with the newest birth at that time: they may be one of those. */
  private readonly suspects = new Map<number, number>();

  constructor({ posix, adopts, onOrphan, onReaped }: ReaperOptions) {
    this.posix = posix;
    this.adopts = adopts;
    this.onOrphan = onOrphan ?? (() => {});
    this.onReaped = onReaped ?? (() => {});
    process.on('SIGCHLD', this.onSignal);
  }

  /** Call it before a child is spawned: until it is over, nobody unknown who ends is taken for an orphan. */
  expect(): Birth {
    if (this.closed) throw new Error('the reaper is closed');
    const birth = ++this.births;
    this.expected.add(birth);
    return {
      register: (pid, ended) => {
        this.register(pid, ended);
        this.over(birth);
      },
      failed: () => {
        // The one that posix_spawn made and took back may be among them, and its number is free again.
        this.suspects.clear();
        this.over(birth);
      },
    };
  }

  private over(birth: number): void {
    this.expected.delete(birth);
    if (!this.sweptInPart) return;
    this.sweptInPart = false;
    setImmediate(() => this.sweep());
  }

  private register(pid: number, ended: Ended): void {
    if (this.closed) throw new Error('the reaper is closed');
    this.suspects.delete(pid);
    this.children.set(pid, ended);
    this.newest = { pid, atMs: performance.now() };
    if (this.children.size === 1) this.anchor.ref();
    // It may have ended before it was known here. Who adopts has noted that, and sweeps again; otherwise nobody has.
    if (!this.adopts) setImmediate(() => this.reap(pid));
  }

  /** Nobody is being started, and whoever was started last has ended or is at work for a while. */
  get quiet(): boolean {
    const { pid, atMs } = this.newest;
    return (
      this.expected.size === 0 &&
      !(this.children.has(pid) && performance.now() - atMs < RECENT_SPAWN_MS)
    );
  }

  /** Whether it is a child that was registered and has not been reaped. */
  has(pid: number): boolean {
    return this.children.has(pid);
  }

  /** Pids of children that have not ended, as far as is known. */
  pids(): readonly number[] {
    return [...this.children.keys()];
  }

  close(): void {
    this.closed = true;
    process.off('SIGCHLD', this.onSignal);
    this.children.clear();
    this.suspects.clear();
    clearInterval(this.anchor);
  }

  // Signals of one kind merge while they wait, so one notice stands for any number of endings.
  private sweep(): void {
    while (!this.closed) {
      const pid = this.posix.peekEnded();
      if (pid === undefined) return;
      if (this.children.has(pid)) {
        this.reap(pid);
      } else if (this.adopts && this.isOrphan(pid)) {
        const status = this.wait(pid);
        if (status !== undefined) this.onOrphan(pid, status);
      } else {
        // waitid() keeps returning a zombie that we must not reap: ask for each known child instead.
        for (const known of this.pids()) this.reap(known);
        this.sweptInPart = this.adopts;
        return;
      }
    }
  }

  /** Not before every birth is over that was under way when it was first seen. It stays unreaped, and keeps its number. */
  private isOrphan(pid: number): boolean {
    const [oldest] = this.expected;
    if (oldest === undefined) {
      this.suspects.clear();
      return true;
    }
    const since = this.suspects.get(pid);
    if (since === undefined) this.suspects.set(pid, this.births);
    if (since === undefined || oldest <= since) return false;
    this.suspects.delete(pid);
    return true;
  }

  /** Looks whether it has ended; also for whoever has reason to believe so before the signal has come. */
  reap(pid: number): void {
    const ended = this.children.get(pid);
    if (!ended) return;
    const status = this.wait(pid);
    if (status === undefined) return;
    this.children.delete(pid);
    if (this.children.size === 0) this.anchor.unref();
    ended(status);
  }

  /**
   * The same for a child whose streams have ended: the kernel closes what a process had open a few microseconds before it
   * tells of its end, and the signal comes much later than that.
   */
  reapAtOnce(pid: number): void {
    for (let look = 0; look < LOOKS && this.children.has(pid); look += 1) this.reap(pid);
    if (!this.children.has(pid)) return;
    try {
      // It may need this processor for that.
      this.posix.awaitEnd(pid, MOMENT_US);
    } catch (error) {
      // No descriptor is free, or pidfd_open is not allowed: SIGCHLD tells of the end, only later.
      if (!(error instanceof PosixError)) throw error;
    }
    this.reap(pid);
  }

  private wait(pid: number): ExitStatus | undefined {
    const status = this.statusOf(pid);
    if (status !== undefined) this.onReaped(pid);
    return status;
  }

  private statusOf(pid: number): ExitStatus | undefined {
    try {
      const status = this.posix.wait(pid);
      return status === undefined ? undefined : decodeStatus(status);
    } catch (error) {
      if (error instanceof PosixError && error.errno === 'ECHILD') return {};
      throw error;
    }
  }
}
