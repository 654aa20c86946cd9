// Watches a peer that owes answers. A wait may be parked for hours, so a late answer says nothing: when the peer has been
// quiet for a while it is pinged beside the calls, and one that does not answer that stands still.

import type { Clock } from '../base/clock.ts';
import { isStopped } from './process-state.ts';

export interface PeerWatchOptions {
  readonly clock: Clock;
  /** Whether anything is waited for. */
  readonly owes: () => boolean;
  readonly ping: () => void;
  /** The peer's process, where it is known and runs on this machine. */
  readonly pid: () => number | undefined;
  /** How long the peer may be quiet before it is pinged, in ticks; one that pays by the connection is pinged later. */
  readonly pingAfterTicks?: number;
  /** Called again and again for as long as the peer stands still and owes an answer. */
  readonly silent: () => void;
}

/**
 * Time is counted in ticks of our own event loop: while this program or the whole machine stands still, none passes, and
 * what has arrived meanwhile is read before the next one.
 */
const TICK_MS = 1000;
const PING_AFTER_TICKS = 2;
/** After the ping. A process that the kernel calls stopped will not answer. */
const STOPPED_TICKS = 1;
/** After the ping. Any other process may only be busy, or on a busy machine. */
const SILENT_TICKS = 13;

export class PeerWatch {
  private readonly options: PeerWatchOptions;
  private quietTicks = 0;
  private cancel: (() => void) | undefined;

  constructor(options: PeerWatchOptions) {
    this.options = options;
  }

  /** To be called whenever something is asked. */
  expect(): void {
    this.cancel ??= this.options.clock.after(TICK_MS, () => this.tick());
  }

  /** To be called whenever anything arrives. */
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
