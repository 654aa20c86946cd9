// Detects a peer that no longer answers. A parked wait may take hours, so a late answer means nothing: when the peer has
// been quiet for a while we ping it, and a peer that does not answer the ping is unresponsive.

import type { Clock } from '../base/clock.ts';
import { readEntry } from './proc-table.ts';

export interface PeerWatchOptions {
  readonly clock: Clock;
  /** Whether an answer is outstanding. */
  readonly owes: () => boolean;
  readonly ping: () => void;
  /** The peer's pid, if it is known and runs on this machine. */
  readonly pid: () => number | undefined;
  /** Ticks of silence before a ping; longer where a ping costs a connection. */
  readonly pingAfterTicks?: number;
  /** Called at every tick while the peer is unresponsive and an answer is outstanding. */
  readonly silent: () => void;
}

/** Time is counted in ticks of our event loop: none passes while this program or the machine is suspended. */
const TICK_MS = 1000;
const PING_AFTER_TICKS = 2;
/** Ticks after the ping for a process that the kernel reports as stopped. */
const STOPPED_TICKS = 1;
/** Ticks after the ping for any other process, which may be busy. */
const SILENT_TICKS = 13;

export class PeerWatch {
  private readonly options: PeerWatchOptions;
  private quietTicks = 0;
  private cancel: (() => void) | undefined;

  constructor(options: PeerWatchOptions) {
    this.options = options;
  }

  /** Call with every request. */
  expect(): void {
    this.cancel ??= this.options.clock.after(TICK_MS, () => this.tick());
  }

  /** Call whenever anything arrives. */
  heard(): void {
    this.quietTicks = 0;
  }

  close(): void {
    this.cancel?.();
  }

  private tick(): void {
    const { owes, ping, pid, silent, pingAfterTicks = PING_AFTER_TICKS } = this.options;
    this.cancel = undefined;
    if (!owes()) {
      this.quietTicks = 0;
      return;
    }
    this.quietTicks += 1;
    const unanswered = this.quietTicks - pingAfterTicks;
    if (unanswered === 0) ping();
    const stopped = unanswered >= STOPPED_TICKS && isStopped(pid());
    if (stopped || unanswered >= SILENT_TICKS) silent();
    if (owes()) this.expect();
  }
}

/** Stopped by SIGSTOP or a debugger. False where that cannot be known. */
export function isStopped(pid: number | undefined): boolean {
  const state = pid === undefined ? undefined : stateOf(pid);
  return state === 'T' || state === 't';
}

/** The reason, for people, why a process does not answer; undefined where the kernel shows none. */
export function whyStill(pid: number | undefined): string | undefined {
  if (pid === undefined) return undefined;
  if (isStopped(pid)) return `it is stopped; "kill -CONT ${pid}" continues it`;
  return stateOf(pid) === 'D' ? 'it waits for a disk or a mount that does not answer' : undefined;
}

/** One letter of proc(5); undefined if the process has ended or cannot be read. */
function stateOf(pid: number): string | undefined {
  try {
    return readEntry(pid)?.state;
  } catch {
    return undefined;
  }
}
