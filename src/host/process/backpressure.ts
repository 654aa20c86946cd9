// Backpressure of readers on a process: how far its output may be ahead of each reader that asked for it. The slowest
// reader counts. A reader that has not read for a while no longer counts.

import type { Clock } from '../../base/clock.ts';

/** A live reader whose buffer is full asks again within this time. */
const PATIENCE_MS = 10_000;
/** Readers of one process. Beyond it the one that has been silent longest is dropped. */
const MOST_READERS = 256;

/** One page that a reader got. */
export interface PacedRead {
  /** Name of the reader; without one it is recognised by its position. */
  readonly reader?: string | undefined;
  readonly after: number;
  readonly nextAfter: number;
  /** Output must not exceed this offset until the reader has continued. */
  readonly limitOffset: number;
}

interface Reader {
  readonly limitOffset: number;
  readonly expiresUs: number;
  /** Number of unnamed readers at the same event. */
  readonly count: number;
}

export class Backpressure {
  private readonly clock: Clock;
  private readonly release: () => void;
  /** In the order of their last read. */
  private readonly readers = new Map<string, Reader>();
  private limitOffset = Infinity;
  /** Offset of the output. */
  private offset = 0;
  private cancel: (() => void) | undefined;
  holding = false;

  /** `release` is called when the child may continue. */
  constructor(clock: Clock, release: () => void) {
    this.clock = clock;
    this.release = release;
  }

  read({ reader, after, nextAfter, limitOffset }: PacedRead, offset: number): void {
    this.offset = offset;
    let count = 1;
    let key = `reader ${reader}`;
    if (reader === undefined) {
      this.leave(`after ${after}`);
      key = `after ${nextAfter}`;
      count += this.readers.get(key)?.count ?? 0;
    }
    this.readers.delete(key);
    const expiresUs = this.clock.nowUs() + PATIENCE_MS * 1000;
    this.readers.set(key, { limitOffset, expiresUs, count });
    const [oldest] = this.readers.keys();
    if (this.readers.size > MOST_READERS && oldest !== undefined) this.readers.delete(oldest);
    this.changed();
  }

  /** The output has reached this offset. Returns whether the child must pause. */
  exceeded(offset: number): boolean {
    this.offset = offset;
    if (offset <= this.limitOffset) return false;
    this.holding = true;
    return true;
  }

  /** All readers are dropped. */
  gone(): void {
    this.readers.clear();
    this.changed();
  }

  /** One of the readers at this position has continued. */
  private leave(key: string): void {
    const standing = this.readers.get(key);
    if (!standing) return;
    if (standing.count === 1) this.readers.delete(key);
    else this.readers.set(key, { ...standing, count: standing.count - 1 });
  }

  private changed(): void {
    this.cancel?.();
    this.cancel = undefined;
    this.limitOffset = Infinity;
    for (const reader of this.readers.values())
      this.limitOffset = Math.min(this.limitOffset, reader.limitOffset);
    const [oldest] = this.readers.values();
    if (oldest) {
      const ms = Math.max(1, Math.ceil((oldest.expiresUs - this.clock.nowUs()) / 1000));
      this.cancel = this.clock.after(ms, () => this.expire());
    }
    if (!this.holding || this.offset > this.limitOffset) return;
    this.holding = false;
    this.release();
  }

  private expire(): void {
    const now = this.clock.nowUs();
    for (const [key, { expiresUs }] of this.readers) if (expiresUs <= now) this.readers.delete(key);
    this.changed();
  }
}
