// The rate of starts: each token has a bucket from which starts take and which time fills again. Who is refused is told
// when to come back.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Caller } from './gate.ts';

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

  /** Counts one start of this caller, or refuses it with `limit_reached`. */
  take({ tokenId, admin }: Pick<Caller, 'tokenId' | 'admin'>): void {
    if (admin && !this.forAdmin) return;
    const bucket = this.filled(tokenId);
    if (bucket.left >= 1) {
      bucket.left -= 1;
      return;
    }
    const { perSecond } = this.options;
    const retryAfterMs = Math.ceil(((1 - bucket.left) / perSecond) * 1000);
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
