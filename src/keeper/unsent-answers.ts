// What one connection may have unsent. Answers are encoded, and large ones made, only while there is room for them; while
// answers wait, no further request is read. So a client that does not read costs bounded memory, whatever it asks for. A
// server asks for many owners on one connection: they have their turns to have large answers made.

import type { Socket } from 'node:net';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { FairTurns } from '../base/fair-turns.ts';
import { abortedError } from '../protocol/cancellation.ts';
import { HoldfastError, toErrorShape } from '../protocol/errors.ts';
import { sendFrame } from './frames.ts';
import type { Answer, Welcome } from './messages.ts';

/** Unsent bytes at which the next large answer is not made yet. */
const LARGE_ROOM_BYTES = 1024 * 1024;
/** Unsent bytes at which the next answer is not encoded yet: it waits as an object that shares its text with the host. */
const ROOM_BYTES = 4 * 1024 * 1024;
/** Large answers being made for one connection at a time. */
const LARGE_AT_ONCE = 2;
/** Searches of one owner under way for one connection at a time. */
const SEARCHES_AT_ONCE = 4;

export class UnsentAnswers {
  private readonly socket: Socket;
  private readonly waiting: (Welcome | Answer)[] = [];
  private closed = false;
  private readonly whileRoom = {
    isOpen: (): boolean =>
      this.closed || (this.waiting.length === 0 && this.hasRoom(LARGE_ROOM_BYTES)),
    givenUp: abortedError,
  };
  private readonly turns = new FairTurns({
    ...this.whileRoom,
    atOnce: LARGE_AT_ONCE,
    byTime: true,
  });
  private readonly searches = new FairTurns({ ...this.whileRoom, perOwner: SEARCHES_AT_ONCE });

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('drain', () => this.drained());
  }

  /** At once where there is room, otherwise when the client has read what is before it. */
  send(message: Welcome | Answer): void {
    if (this.socket.destroyed) return;
    if (this.waiting.length === 0 && this.hasRoom(ROOM_BYTES)) {
      this.write(message);
      return;
    }
    this.waiting.push(message);
    this.socket.pause();
  }

  /** Makes a large answer when there is room for it, and it is the owner's turn. */
  make<T>(
    { owner, signal }: { readonly owner: string; readonly signal: CancelSignal },
    make: () => Promise<T>,
  ): Promise<T> {
    return this.turns.run(owner, make, signal);
  }

  /**
   * Makes the answer of a search when there is room for it. A search can take long, so it takes no turn from other large
   * answers, nor from searches of other owners.
   */
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
      // Behind the answer of this one, which may leave no room.
      setImmediate(() => this.searches.done(owner));
    }
  }

  /** Encodes everything that waits: nothing more will come. */
  flush(): void {
    if (!this.socket.destroyed) for (const message of this.waiting.splice(0)) this.write(message);
  }

  /** The client has gone: nothing waits for it any more. What is made for others needs no room of its connection. */
  close(): void {
    this.waiting.length = 0;
    this.closed = true;
    this.turns.next();
    this.searches.next();
  }

  private drained(): void {
    let sent = 0;
    for (const message of this.waiting) {
      if (!this.hasRoom(ROOM_BYTES)) break;
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

  private hasRoom(bytes: number): boolean {
    return this.socket.writableLength < bytes;
  }
}
