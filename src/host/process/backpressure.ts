// Backpressure of readers on a process: how far its output may get ahead of each reader that asked to be waited for. The
// reader that is farthest behind counts. A reader that has not read for a while counts as gone, and holds nobody back.

import type { Clock } from '../../base/clock.ts';

/** A reader that is alive but has no room asks again within this time. */
const PATIENCE_MS = 10_000;
/** Of one process, at once. Beyond it the one that has been silent longest counts as gone. */
const MOST_READERS = 256;

/** One page that a reader was given. */
export interface PacedRead {
  /** Its name; a reader without one is known by the event behind which it reads on. */
  readonly reader?: string | undefined;
  readonly after: number;
  readonly nextAfter: number;
  /** Output must not get beyond this offset until it has read on. */
  readonly limitOffset: number;
}

interface Reader {
  readonly limitOffset: number;
  readonly expiresUs: number;
  /** Readers without a name that stand at the same event. */
  readonly count: number;
}

export class Backpressure {
  private readonly clock: Clock;
  private readonly release: () => void;
  /** The one that read last comes last. */
  private readonly readers = new Map<string, Reader>();
  private limitOffset = Infinity;
  /** How far the output has come. */
  private offset = 0;
  private cancel: (() => void) | undefined;
  holding = false;

  /** `release` is called when the child may go on. */
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

  /** Output has come up to here. True: the child is to be held. */
  exceeded(offset: number): boolean {
    this.offset = offset;
    if (offset <= this.limitOffset) return false;
    this.holding = true;
    return true;
  }

  /** No reader is waited for any more. */
  gone(): void {
    this.readers.clear();
    this.changed();
  }

  /** One of those that stand there has read on. */
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
