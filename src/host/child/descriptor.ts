// One end of a pipe, or the master of a terminal, that is ours: reads into a buffer that is lent to the listener, and
// writes with one promise per write. Both stop and go on with what the kernel has and takes.

import { closeSync } from 'node:fs';

import { HoldfastError } from '../../protocol/errors.ts';
import type { Posix } from '../../system/posix.ts';
import { tryQuery } from '../../system/posix-library.ts';
import type { Happened, Poller } from './poller.ts';
import type { Reaper } from './reaper.ts';

/** What children share. One read buffer serves all: a read and its delivery are one step of the event loop. */
export interface ChildTools {
  readonly posix: Posix;
  readonly reaper: Reaper;
  readonly poller: Poller;
  readonly readBuffer: Buffer;
}

/** 128 KiB fits the L2 cache; 256 KiB was 25 % slower, because the same buffer is written right after. */
export function createReadBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(131_072);
}

/** What a pipe holds by default. */
const PIPE_BYTES = 65_536;
/** The kernel has no memory for what is written (pipe(7) needs a page): it is tried again after so long. */
const AGAIN_MS = 50;

interface Reading {
  /** The bytes are only lent. */
  readonly received: (bytes: Buffer) => void;
  /** Called once, when nothing more comes. The descriptor closes itself afterwards. */
  readonly over: () => void;
}

interface Write {
  readonly bytes: Buffer;
  readonly taken: () => void;
  readonly refused: (error: Error) => void;
}

export function stdinClosed(): HoldfastError {
  return new HoldfastError('stdin_closed', 'nothing reads the input of this process any more');
}

export class Descriptor {
  readonly fd: number;
  private readonly tools: ChildTools;
  /** Undefined when there is nothing to read, or no more. */
  private reading: Reading | undefined;
  private paused = false;
  private readonly writes: Write[] = [];
  private ending = false;
  private open = true;
  private again: NodeJS.Timeout | undefined;

  /** Takes over `fd`, which does not block. Nothing is told before the next turn of the loop. */
  constructor(fd: number, tools: ChildTools, reading?: Reading) {
    this.fd = fd;
    this.tools = tools;
    this.reading = reading;
    this.watch();
  }

  pause(): void {
    this.paused = true;
    this.watch();
  }

  resume(): void {
    this.paused = false;
    this.watch();
  }

  /**
   * Delivers what it holds at this moment, even while it is paused; no more, since others may go on writing for ever.
   * True when that was all that ever comes; `over` is then not called. `held` is what it can hold at most, where the
   * kernel does not tell.
   */
  drain(held?: number): boolean {
    let left = held;
    for (let count = this.take(); count !== 0; count = this.take()) {
      if (count === undefined) return false;
      left = left === undefined ? this.held() : left - count;
      // At nothing it is read once more, for the end.
      if (left < 0) return false;
    }
    const wasReading = this.reading !== undefined;
    this.reading = undefined;
    this.watch();
    return wasReading;
  }

  write(bytes: Buffer): Promise<void> {
    if (!this.open || this.ending) return Promise.reject(stdinClosed());
    if (bytes.length === 0) return Promise.resolve();
    return new Promise((taken, refused) => {
      this.writes.push({ bytes, taken, refused });
      if (this.writes.length === 1) this.give();
    });
  }

  /** The kernel has not taken everything written. */
  get isWriting(): boolean {
    return this.writes.length > 0;
  }

  /** Closes once everything written before has been taken. */
  end(): void {
    this.ending = true;
    if (this.writes.length === 0) this.close();
  }

  close(): void {
    if (!this.open) return;
    this.open = false;
    this.reading = undefined;
    this.tools.poller.forget(this.fd);
    closeSync(this.fd);
    clearTimeout(this.again);
    for (const { refused } of this.writes.splice(0)) refused(stdinClosed());
  }

  private watch(): void {
    if (!this.open) return;
    const read = this.reading !== undefined && !this.paused;
    // The kernel calls a pipe writable that it has no memory for.
    const write = this.writes.length > 0 && this.again === undefined;
    this.tools.poller.watch(this.fd, { read, write }, this.happened);
  }

  private readonly happened = ({ read, write, hangUp }: Happened): void => {
    if (write) this.give();
    if (read && this.reading && !this.paused) this.readOn(hangUp);
  };

  /** Once: then another one has its turn. Where nobody writes any more it shows at once whether that was all. */
  private readOn(hangUp: boolean): void {
    let count = this.take();
    if (count && hangUp && this.reading && !this.paused) count = this.take();
    if (count === 0) this.over();
  }

  /** Where the kernel does not tell, what a pipe can hold at most. */
  private held(): number {
    return tryQuery(() => this.tools.posix.readableBytes(this.fd)) ?? PIPE_BYTES;
  }

  /** Reads once and delivers: the count, 0 at the end, undefined when there is nothing now. */
  private take(): number | undefined {
    const { posix, readBuffer } = this.tools;
    if (!this.open || !this.reading) return 0;
    const count = posix.readNow(this.fd, readBuffer);
    if (count) this.reading.received(readBuffer.subarray(0, count));
    return count;
  }

  /** Closed when whoever waits for this end has been told. */
  private over(): void {
    const { reading } = this;
    this.reading = undefined;
    // First: it closes whatever becomes of the call.
    setImmediate(() => this.close());
    reading?.over();
  }

  /** Writes what the kernel takes of what waits. */
  private give(): void {
    const { posix } = this.tools;
    for (let [first] = this.writes; first && this.open; [first] = this.writes) {
      const count = posix.writeNow(this.fd, first.bytes);
      if (count === 'no_memory') this.giveLater();
      if (count === undefined || count === 'no_memory') break;
      if (count === 'closed') {
        for (const { refused } of this.writes.splice(0)) refused(stdinClosed());
      } else if (count < first.bytes.length) {
        this.writes[0] = { ...first, bytes: first.bytes.subarray(count) };
      } else {
        this.writes.shift();
        first.taken();
      }
    }
    if (this.ending && this.writes.length === 0) this.close();
    else this.watch();
  }

  private giveLater(): void {
    this.again ??= setTimeout(() => {
      this.again = undefined;
      this.give();
    }, AGAIN_MS);
  }
}
