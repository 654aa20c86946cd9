// The requests of one connection, handled one after the other. A client may send many without waiting for an answer: if all
// of them were handled at once, one connection could keep the server busy for as long as it likes.

import type { Duplex } from 'node:stream';

/** More requests than this wait unhandled: nothing more is read from the connection. */
const MAX_WAITING = 16;

export class Pipeline {
  private readonly socket: Duplex;
  private readonly waiting: (() => void)[] = [];
  private busy = false;

  constructor(socket: Duplex) {
    this.socket = socket;
  }

  /** Whether an answer is still due. */
  get isBusy(): boolean {
    return this.busy;
  }

  /** Calls `handle` when the requests before it have been answered; never when the connection closes before that. */
  begin(handle: () => void): void {
    if (!this.busy) {
      this.busy = true;
      handle();
      return;
    }
    this.waiting.push(handle);
    if (this.waiting.length === MAX_WAITING) this.socket.pause();
  }

  /** The request that is being handled has been answered, or its connection is closed. */
  answered(): void {
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
