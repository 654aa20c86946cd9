// The reaper: reaps our children and reports each exit once. It never reaps a child that another part of the program
// started.

import { constants } from 'node:os';

import type { ExitStatus, RootUse } from './child.ts';
import type { Posix } from '../../system/posix.ts';
import { PosixError } from '../../system/posix-library.ts';
import type { Used } from '../../system/resources.ts';

export interface ReaperOptions {
  readonly posix: Posix;
  /**
   * True in a process that is subreaper and starts no children through Node: adopted orphans are reaped too. False when
   * embedded in another program, which must reap its own children.
   */
  readonly adopts: boolean;
  readonly onOrphan?: (pid: number, status: ExitStatus) => void;
  /** A child or an orphan has been reaped: from now on the kernel may reuse its pid. */
  readonly onReaped?: (pid: number) => void;
  /** Called before an orphan is reaped. The answer takes what it has used. */
  readonly accountFor?: ((pid: number) => (used: Used) => void) | undefined;
  /** Adds the cause of a kill to the exit status of a child. */
  readonly explain?: (status: ExitStatus) => ExitStatus;
}

type Ended = (status: ExitStatus, used?: RootUse) => void;

interface Reaped {
  readonly status: ExitStatus;
  readonly used?: Used;
}

/** A child that another thread is spawning. Its pid is not known yet, and it may exit before it is. */
export interface PendingSpawn {
  /** Calls `ended` once, from the event loop; without code and signal if other code reaped the child. */
  register(pid: number, ended: Ended): void;
  failed(): void;
}

/** After a spawn, further ones are likely within this time. */
const RECENT_SPAWN_MS = 20;
/** Each try takes about a microsecond. */
const TRIES = 3;
/** Longest wait for a process that has closed its streams; one that continues without them is reaped by SIGCHLD. */
const MAX_WAIT_US = 200;
// The longest delay that Node's timers take, about 25 days.
const longestDelayMs = 2 ** 31 - 1;

const signalNames = new Map<number, string>();
for (const [name, value] of Object.entries(constants.signals)) {
  if (!signalNames.has(value)) signalNames.set(value, name);
}

/** Decodes a wait status. The core-dump flag (0x80) is ignored. */
export function decodeStatus(status: number): ExitStatus {
  const signal = status & 0x7f;
  if (signal === 0) return { code: (status >> 8) & 0xff };
  // glibc reserves 32 and 33, so SIGRTMIN is 34.
  return { signal: signalNames.get(signal) ?? `SIGRTMIN+${signal - 34}` };
}

export class Reaper {
  private readonly posix: Posix;
  private readonly adopts: boolean;
  private readonly onOrphan: (pid: number, status: ExitStatus) => void;
  private readonly onReaped: (pid: number) => void;
  private readonly explain: (status: ExitStatus) => ExitStatus;
  private readonly accountFor: ReaperOptions['accountFor'];
  private readonly children = new Map<number, Ended>();
  private readonly onSignal = (): void => this.sweep();
  /** Keeps the event loop alive while there are children; a SIGCHLD listener does not. */
  private readonly anchor = setInterval(() => {}, longestDelayMs).unref();
  private closed = false;
  private spawns = 0;
  /** The last sweep stopped early at an unknown zombie; sweep again once pending spawns are registered. */
  private sweptInPart = false;
  private newest = { pid: 0, atMs: 0 };
  /** Pending spawns, oldest first. */
  private readonly pending = new Set<number>();
  /** Unknown zombies, each with the newest spawn when it was seen: it may be the child of a pending spawn. */
  private readonly maybePending = new Map<number, number>();

  constructor({ posix, adopts, onOrphan, onReaped, explain, accountFor }: ReaperOptions) {
    this.posix = posix;
    this.accountFor = accountFor;
    this.adopts = adopts;
    this.onOrphan = onOrphan ?? (() => {});
    this.onReaped = onReaped ?? (() => {});
    this.explain = explain ?? ((status) => status);
    process.on('SIGCHLD', this.onSignal);
  }

  /** Call it before a spawn: until it is registered or failed, no unknown zombie is taken for an orphan. */
  beginSpawn(): PendingSpawn {
    if (this.closed) throw new Error('the reaper is closed');
    const spawn = ++this.spawns;
    this.pending.add(spawn);
    return {
      register: (pid, ended) => {
        this.register(pid, ended);
        this.endSpawn(spawn);
      },
      failed: () => {
        // posix_spawn may have made a child and reaped it itself: its pid can be reused.
        this.maybePending.clear();
        this.endSpawn(spawn);
      },
    };
  }

  private endSpawn(spawn: number): void {
    this.pending.delete(spawn);
    if (!this.sweptInPart) return;
    this.sweptInPart = false;
    setImmediate(() => this.sweep());
  }

  private register(pid: number, ended: Ended): void {
    if (this.closed) throw new Error('the reaper is closed');
    this.maybePending.delete(pid);
    this.children.set(pid, ended);
    this.newest = { pid, atMs: performance.now() };
    if (this.children.size === 1) this.anchor.ref();
    // It may have exited before it was registered. A subreaper has noted that and sweeps again; others must look now.
    if (!this.adopts) setImmediate(() => this.reap(pid));
  }

  /** No spawn is pending, and the last child has exited or is older than RECENT_SPAWN_MS. */
  get noRecentSpawn(): boolean {
    const { pid, atMs } = this.newest;
    return (
      this.pending.size === 0 &&
      !(this.children.has(pid) && performance.now() - atMs < RECENT_SPAWN_MS)
    );
  }

  /** Whether it is a registered child that has not been reaped. */
  has(pid: number): boolean {
    return this.children.has(pid);
  }

  /** Pids of children that have not been reaped. */
  pids(): readonly number[] {
    return [...this.children.keys()];
  }

  close(): void {
    this.closed = true;
    process.off('SIGCHLD', this.onSignal);
    this.children.clear();
    this.maybePending.clear();
    clearInterval(this.anchor);
  }

  // Pending signals of one kind merge, so one SIGCHLD stands for any number of exits.
  private sweep(): void {
    while (!this.closed) {
      const pid = this.posix.peekEnded();
      if (pid === undefined) return;
      if (this.children.has(pid)) {
        this.reap(pid);
      } else if (this.adopts && this.isOrphan(pid)) {
        const account = this.accountFor?.(pid);
        const { status, used } = this.wait(pid) ?? {};
        if (used) account?.(used);
        if (status !== undefined) this.onOrphan(pid, status);
      } else {
        // waitid() keeps returning a zombie that we must not reap: try each known child instead.
        for (const known of this.pids()) this.reap(known);
        this.sweptInPart = this.adopts;
        return;
      }
    }
  }

  /** False until every spawn is over that was pending when it was first seen. Unreaped, it keeps its pid. */
  private isOrphan(pid: number): boolean {
    const [oldest] = this.pending;
    if (oldest === undefined) {
      this.maybePending.clear();
      return true;
    }
    const since = this.maybePending.get(pid);
    if (since === undefined) this.maybePending.set(pid, this.spawns);
    if (since === undefined || oldest <= since) return false;
    this.maybePending.delete(pid);
    return true;
  }

  /** Reaps the child if it has exited. */
  reap(pid: number): void {
    const ended = this.children.get(pid);
    if (!ended) return;
    const reaped = this.wait(pid);
    if (reaped === undefined) return;
    const { status, used } = reaped;
    this.children.delete(pid);
    if (this.children.size === 0) this.anchor.unref();
    ended(this.explain(status), used && { ...used, countsOrphans: this.adopts });
  }

  /**
   * The same for a child whose streams have ended: an exiting process closes its descriptors a few microseconds before it
   * becomes a zombie, and SIGCHLD arrives much later.
   */
  reapAtOnce(pid: number): void {
    for (let tries = 0; tries < TRIES && this.children.has(pid); tries += 1) this.reap(pid);
    if (!this.children.has(pid)) return;
    try {
      // Blocking lets the process use this processor.
      this.posix.awaitEnd(pid, MAX_WAIT_US);
    } catch (error) {
      // No free descriptor, or pidfd_open is not allowed: SIGCHLD reports the exit a little later.
      if (!(error instanceof PosixError)) throw error;
    }
    this.reap(pid);
  }

  private wait(pid: number): Reaped | undefined {
    const reaped = this.statusOf(pid);
    if (reaped !== undefined) this.onReaped(pid);
    return reaped;
  }

  private statusOf(pid: number): Reaped | undefined {
    try {
      const ended = this.posix.wait(pid);
      if (ended === undefined) return undefined;
      return { status: decodeStatus(ended.status), used: ended.used };
    } catch (error) {
      if (error instanceof PosixError && error.errno === 'ECHILD') return { status: {} };
      throw error;
    }
  }
}
