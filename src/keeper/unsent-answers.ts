// Limits the unsent answers of one connection. Answers are encoded, and large ones made, only while the socket's buffer is
// below a limit; while answers wait, no request is read. So a client that does not read costs bounded memory. A server asks
// for many owners on one connection: their large answers are made fairly in turn.

import type { Socket } from 'node:net';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { FairTurns } from '../base/fair-turns.ts';
import { abortedError } from '../protocol/cancellation.ts';
import { HoldfastError, toErrorShape } from '../protocol/errors.ts';
import { sendFrame } from './frames.ts';
import type { Answer, Welcome } from './messages.ts';

/** At this many unsent bytes no large answer is made. */
const MAX_UNSENT_FOR_LARGE = 1024 * 1024;
/** At this many unsent bytes no answer is encoded: it waits as an object that shares its text with the host. */
const MAX_UNSENT = 4 * 1024 * 1024;
/** Large answers made concurrently for one connection. */
const LARGE_AT_ONCE = 2;
/** Concurrent searches of one owner on one connection. */
const SEARCHES_AT_ONCE = 4;

export class UnsentAnswers {
  private readonly socket: Socket;
  private readonly waiting: (Welcome | Answer)[] = [];
  private closed = false;
  private readonly whileDrained = {
    isOpen: (): boolean =>
      this.closed || (this.waiting.length === 0 && this.isBelow(MAX_UNSENT_FOR_LARGE)),
    givenUp: abortedError,
  };
  private readonly turns = new FairTurns({
    ...this.whileDrained,
    atOnce: LARGE_AT_ONCE,
    // What came in meanwhile is answered between two of them.
    perLoop: 1,
    byTime: true,
  });
  private readonly searches = new FairTurns({ ...this.whileDrained, perOwner: SEARCHES_AT_ONCE });

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('drain', () => this.drained());
  }

  /** Sends now if the buffer is below its limit, otherwise when the client has read enough. */
  send(message: Welcome | Answer): void {
    if (this.socket.destroyed) return;
    if (this.waiting.length === 0 && this.isBelow(MAX_UNSENT)) {
      this.write(message);
      return;
    }
    this.waiting.push(message);
    this.socket.pause();
  }

  /** Makes a large answer when the buffer is below its limit and it is the owner's turn. */
  make<T>(
    { owner, signal }: { readonly owner: string; readonly signal: CancelSignal },
    make: () => Promise<T>,
  ): Promise<T> {
    return this.turns.run(owner, make, signal);
  }

  /** The same for a search, which may take long: it uses no turn of other large answers or of other owners' searches. */
  async search<T>(
    { owner, signal }: { readonly owner: string; readonly signal: CancelSignal },
    make: () => Promise<T>,
  ): Promise<T> {
    const turn = this.searches.pass(owner, signal);
    if (turn) await turn;
    try {
      if (signal.aborted) throw abortedError();
      return await make();
    } finally {
      // After this answer has been sent, which may fill the buffer.
      setImmediate(() => this.searches.done(owner));
    }
  }

  /** Encodes all waiting answers: no more will come. */
  flush(): void {
    if (!this.socket.destroyed) for (const message of this.waiting.splice(0)) this.write(message);
  }

  /** The client has disconnected: drops its answers. Answers in progress no longer wait for its buffer. */
  close(): void {
    this.waiting.length = 0;
    this.closed = true;
    this.turns.next();
    this.searches.next();
  }

  private drained(): void {
    let sent = 0;
    for (const message of this.waiting) {
      if (!this.isBelow(MAX_UNSENT)) break;
      this.write(message);
      sent += 1;
    }
    this.waiting.splice(0, sent);
    if (this.waiting.length > 0) return;
    this.socket.resume();
    this.turns.next();
    this.searches.next();
  }

  private write(message: Welcome | Answer): void {
    try {
      sendFrame(this.socket, message);
    } catch (error) {
      const tooLarge = error instanceof HoldfastError && error.code === 'too_large';
      if (!tooLarge || 'welcome' in message) throw error;
      sendFrame(this.socket, { id: message.id, error: toErrorShape(error) } satisfies Answer);
    }
  }

  private isBelow(bytes: number): boolean {
    return this.socket.writableLength < bytes;
  }
}
