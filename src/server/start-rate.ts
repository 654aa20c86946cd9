// Limits how fast each token starts processes, by a token bucket. A start that comes too soon waits for its turn; one
// that would wait too long is refused with the time after which to retry.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Caller } from './http/gate.ts';

export interface StartRateOptions {
  readonly perSecond: number;
  /** How many may start at once after a quiet time. */
  readonly burst: number;
}

/** Far above what a busy agent does, far below a loop of starts. */
const defaultStartRate: StartRateOptions = { perSecond: 50, burst: 200 };

interface Bucket {
  left: number;
  atUs: number;
}

/** Above this number, full buckets are deleted. */
const MAX_BUCKETS = 1000;
/** A client waits this long without taking it for a fault. At the default rate 250 starts of one token can wait. */
const MAX_WAIT_MS = 5000;

export class StartRate {
  readonly options: StartRateOptions;
  private readonly clock: Clock;
  private readonly buckets = new Map<string, Bucket>();
  /** The admin token is limited only if a rate was set: it belongs to the user of this machine. */
  private readonly forAdmin: boolean;

  constructor(clock: Clock, options?: StartRateOptions) {
    this.clock = clock;
    this.options = options ?? defaultStartRate;
    this.forAdmin = options !== undefined;
  }

  /** Waits until this caller may start one more, in order, or refuses with `limit_reached`. */
  async admit(caller: Pick<Caller, 'tokenId' | 'admin'>): Promise<void> {
    const waitMs = this.take(caller, MAX_WAIT_MS);
    if (waitMs > 0)
      await new Promise<void>((resolve) => void this.clock.after(Math.ceil(waitMs), resolve));
  }

  /**
   * Counts one start of this caller and returns how long it must wait, in milliseconds. A start that would wait longer
   * than `mostMs` is not counted but refused with `limit_reached`.
   */
  take({ tokenId, admin }: Pick<Caller, 'tokenId' | 'admin'>, mostMs = 0): number {
    if (admin && !this.forAdmin) return 0;
    const bucket = this.filled(tokenId);
    const { perSecond } = this.options;
    const waitMs = Math.max(0, ((1 - bucket.left) / perSecond) * 1000);
    if (waitMs <= mostMs) {
      // Below zero: waiting starts have already been counted.
      bucket.left -= 1;
      return waitMs;
    }
    const retryAfterMs = Math.ceil(waitMs - mostMs);
    throw new HoldfastError(
      'limit_reached',
      `This token starts more than ${perSecond} processes a second, which is the limit "startsPerSecond".`,
      { retryAfterMs },
    );
  }

  private filled(tokenId: string): Bucket {
    const { perSecond, burst } = this.options;
    const now = this.clock.nowUs();
    const bucket = this.buckets.get(tokenId) ?? { left: burst, atUs: now };
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.atUs) / 1e6) * perSecond);
    bucket.atUs = now;
    if (this.buckets.size >= MAX_BUCKETS && !this.buckets.has(tokenId)) this.forgetFull(now);
    this.buckets.set(tokenId, bucket);
    return bucket;
  }

  private forgetFull(now: number): void {
    const { perSecond, burst } = this.options;
    for (const [id, { left, atUs }] of this.buckets) {
      if (left + ((now - atUs) / 1e6) * perSecond >= burst) this.buckets.delete(id);
    }
  }
}
