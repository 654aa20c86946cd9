// The rate of starts: each token has a bucket from which starts take and which time fills again. A start that comes too soon
// waits for its turn; one that would wait too long is refused and told when to come back.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Caller } from './http/gate.ts';

export interface StartRateOptions {
  readonly perSecond: number;
  /** So many at once after a quiet time. */
  readonly burst: number;
}

/** Far above what a busy agent does, far below what a loop of starts would. */
const defaultStartRate: StartRateOptions = { perSecond: 50, burst: 200 };

interface Bucket {
  left: number;
  atUs: number;
}

/** Full buckets are forgotten when there are more. */
const MAX_BUCKETS = 1000;
/** A client waits so long without taking it for a fault. At the default rate 250 starts of a token can wait. */
const MAX_WAIT_MS = 5000;

export class StartRate {
  readonly options: StartRateOptions;
  private readonly clock: Clock;
  private readonly buckets = new Map<string, Bucket>();
  /** The admin is the person whose machine it is: held to a rate only when one was asked for. */
  private readonly forAdmin: boolean;

  constructor(clock: Clock, options?: StartRateOptions) {
    this.clock = clock;
    this.options = options ?? defaultStartRate;
    this.forAdmin = options !== undefined;
  }

  /** Waits until this caller may start one more, in the order of its starts, or refuses it with `limit_reached`. */
  async admit(caller: Pick<Caller, 'tokenId' | 'admin'>): Promise<void> {
    const waitMs = this.take(caller, MAX_WAIT_MS);
    if (waitMs > 0)
      await new Promise<void>((resolve) => void this.clock.after(Math.ceil(waitMs), resolve));
  }

  /**
   * Counts one start of this caller and answers how long it has to wait, in milliseconds. One that would have to wait
   * longer than `mostMs` is not counted but refused with `limit_reached`.
   */
  take({ tokenId, admin }: Pick<Caller, 'tokenId' | 'admin'>, mostMs = 0): number {
    if (admin && !this.forAdmin) return 0;
    const bucket = this.filled(tokenId);
    const { perSecond } = this.options;
    const waitMs = Math.max(0, ((1 - bucket.left) / perSecond) * 1000);
    if (waitMs <= mostMs) {
      // Below zero: starts that wait have taken theirs already.
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
