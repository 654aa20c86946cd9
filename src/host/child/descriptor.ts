// A non-blocking end of a pipe, or the master of a terminal: reads into a shared buffer, and writes with one promise per
// write.

import { closeSync } from 'node:fs';

import { HoldfastError } from '../../protocol/errors.ts';
import type { Posix } from '../../system/posix.ts';
import { tryQuery } from '../../system/posix-library.ts';
import type { Happened, Poller } from './poller.ts';
import type { Reaper } from './reaper.ts';

/** Shared by all children. One read buffer is enough: a read and its delivery are one step of the event loop. */
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

/** Default capacity of a pipe. */
const PIPE_BYTES = 65_536;
/** Retry delay when the kernel has no memory for a write (a pipe needs a page). */
const RETRY_MS = 50;

interface Reading {
  /** The bytes are valid only during the call. */
  readonly received: (bytes: Buffer) => void;
  /** Called once, at the end of the stream. The descriptor closes itself afterwards. */
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
  /** Undefined for a descriptor that is only written, and after the end of the stream. */
  private reading: Reading | undefined;
  private paused = false;
  private readonly writes: Write[] = [];
  private ending = false;
  private open = true;
  private retryTimer: NodeJS.Timeout | undefined;

  /** Takes ownership of `fd`. Calls back from the next turn of the event loop on. */
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
   * Delivers what the kernel holds now, even while paused; no more, because others may keep writing. True at the end of
   * the stream; `over` is then not called. `held`: its capacity, where FIONREAD is not exact.
   */
  drain(held?: number): boolean {
    let left = held;
    for (let count = this.readOnce(); count !== 0; count = this.readOnce()) {
      if (count === undefined) return false;
      left = left === undefined ? this.held() : left - count;
      // At 0 read once more, to see the end.
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
      if (this.writes.length === 1) this.writePending();
    });
  }

  /** The kernel has not taken all written bytes. */
  get isWriting(): boolean {
    return this.writes.length > 0;
  }

  /** Closes after the pending writes. */
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
    clearTimeout(this.retryTimer);
    for (const { refused } of this.writes.splice(0)) refused(stdinClosed());
  }

  private watch(): void {
    if (!this.open) return;
    const read = this.reading !== undefined && !this.paused;
    // The kernel reports a pipe as writable even when it has no memory for a write.
    const write = this.writes.length > 0 && this.retryTimer === undefined;
    this.tools.poller.watch(this.fd, { read, write }, this.happened);
  }

  private readonly happened = ({ read, write, hangUp }: Happened): void => {
    if (write) this.writePending();
    if (read && this.reading && !this.paused) this.readReady(hangUp);
  };

  /** Reads once, so that other descriptors get their turn. After a hang-up it reads again, to see the end at once. */
  private readReady(hangUp: boolean): void {
    let count = this.readOnce();
    if (count && hangUp && this.reading && !this.paused) count = this.readOnce();
    if (count === 0) this.over();
  }

  /** The capacity of a pipe if the kernel refuses the query. */
  private held(): number {
    return tryQuery(() => this.tools.posix.readableBytes(this.fd)) ?? PIPE_BYTES;
  }

  /** Reads once and delivers: the count, 0 at the end, undefined if nothing is there now. */
  private readOnce(): number | undefined {
    const { posix, readBuffer } = this.tools;
    if (!this.open || !this.reading) return 0;
    const count = posix.readNow(this.fd, readBuffer);
    if (count) this.reading.received(readBuffer.subarray(0, count));
    return count;
  }

  private over(): void {
    const { reading } = this;
    this.reading = undefined;
    // Scheduled first, so that it closes even if the call throws.
    setImmediate(() => this.close());
    reading?.over();
  }

  private writePending(): void {
    const { posix } = this.tools;
    for (let [first] = this.writes; first && this.open; [first] = this.writes) {
      const count = posix.writeNow(this.fd, first.bytes);
      if (count === 'no_memory') this.retryLater();
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

  private retryLater(): void {
    this.retryTimer ??= setTimeout(() => {
      this.retryTimer = undefined;
      this.writePending();
    }, RETRY_MS);
  }
}
