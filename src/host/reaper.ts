// The reaper: learns how children ended, each once, and never takes a child that is somebody else's.

import { constants } from 'node:os';

import type { ExitStatus } from './child.ts';
import type { Posix } from './posix.ts';
import { PosixError } from './posix-library.ts';

export interface ReaperOptions {
  readonly posix: Posix;
  /**
   * True in a process that is subreaper and starts no children through Node: orphans that it inherits are reaped too.
   * False inside somebody's program, whose own children must be left to it.
   */
  readonly adopts: boolean;
  readonly onOrphan?: (pid: number, status: ExitStatus) => void;
}

type Ended = (status: ExitStatus) => void;

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
  private readonly children = new Map<number, Ended>();
  private readonly onSignal = (): void => this.sweep();
  private anchor: NodeJS.Timeout | undefined;
  private closed = false;

  constructor({ posix, adopts, onOrphan }: ReaperOptions) {
    this.posix = posix;
    this.adopts = adopts;
    this.onOrphan = onOrphan ?? (() => {});
    process.on('SIGCHLD', this.onSignal);
  }

  /**
   * Call it in the turn in which the child was spawned: a sweep between the two would take the child for an orphan.
   * `ended` comes later from the event loop, once; with neither code nor signal if somebody else reaped the child.
   */
  register(pid: number, ended: Ended): void {
    if (this.closed) throw new Error('the reaper is closed');
    this.children.set(pid, ended);
    // A SIGCHLD listener does not keep Node's loop alive.
    this.anchor ??= setInterval(() => {}, longestDelayMs);
    // It may have died before this process listened for SIGCHLD.
    setImmediate(() => this.reap(pid));
  }

  /** Pids of children that have not ended, as far as is known. */
  pids(): readonly number[] {
    return [...this.children.keys()];
  }

  close(): void {
    this.closed = true;
    process.off('SIGCHLD', this.onSignal);
    this.children.clear();
    this.letGo();
  }

  // Signals of one kind merge while they wait, so one notice stands for any number of endings.
  private sweep(): void {
    while (!this.closed) {
      const pid = this.posix.peekEnded();
      if (pid === undefined) return;
      if (this.children.has(pid)) {
        this.reap(pid);
      } else if (this.adopts) {
        const status = this.wait(pid);
        if (status !== undefined) this.onOrphan(pid, status);
      } else {
        // A stranger stands first in the line and stays there until its owner takes it: ask for each of ours instead.
        for (const known of this.pids()) this.reap(known);
        return;
      }
    }
  }

  private reap(pid: number): void {
    const ended = this.children.get(pid);
    if (!ended) return;
    const status = this.wait(pid);
    if (status === undefined) return;
    this.children.delete(pid);
    if (this.children.size === 0) this.letGo();
    ended(status);
  }

  private wait(pid: number): ExitStatus | undefined {
    try {
      const status = this.posix.wait(pid);
      return status === undefined ? undefined : decodeStatus(status);
    } catch (error) {
      if (error instanceof PosixError && error.errno === 'ECHILD') return {};
      throw error;
    }
  }

  private letGo(): void {
    clearInterval(this.anchor);
    this.anchor = undefined;
  }
}
