// Handles the requests of one connection one after the other. A client may send many without waiting for answers;
// handled all at once, they would let one connection keep the server busy.

import type { Duplex } from 'node:stream';

/** When this many requests wait, nothing more is read from the connection. */
const MAX_WAITING = 16;

export class Pipeline {
  private readonly socket: Duplex;
  private readonly waiting: (() => void)[] = [];
  private busy = false;
  private nextCame: (() => void) | undefined;

  constructor(socket: Duplex) {
    this.socket = socket;
  }

  /** Whether an answer is still due. */
  get isBusy(): boolean {
    return this.busy;
  }

  /** Calls `handle` after the requests before it were answered; never if the connection closes first. */
  begin(handle: () => void): void {
    if (!this.busy) {
      this.busy = true;
      handle();
      return;
    }
    this.waiting.push(handle);
    this.nextCame?.();
    if (this.waiting.length === MAX_WAITING) this.socket.pause();
  }

  /** Calls `listener` for each request that arrives before the current one was answered. */
  onNext(listener: () => void): void {
    this.nextCame = listener;
  }

  /** The current request was answered, or its connection closed. */
  answered(): void {
    this.nextCame = undefined;
    if (this.socket.destroyed) {
      this.waiting.length = 0;
      return;
    }
    const handle = this.waiting.shift();
    if (this.waiting.length === MAX_WAITING - 1) this.socket.resume();
    this.busy = handle !== undefined;
    handle?.();
  }
}
