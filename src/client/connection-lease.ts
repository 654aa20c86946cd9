// The lease of one connection: opened by the first leased start, renewed while this process lives.

import { systemClock, type Clock } from '../base/clock.ts';
import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Api } from './api.ts';

export interface LeaseOptions {
  /** Every start of this connection is under its lease, unless it says `lease: false`. */
  readonly lease?: boolean;
  /** How long leased processes outlive this process at most; 15 seconds by default. */
  readonly leaseMs?: number;
}

const DEFAULT_LEASE_MS = 15_000;
/** A shorter one would run out on a busy machine. */
const MIN_LEASE_MS = 1000;
const RENEWALS_PER_LEASE = 3;

export class ConnectionLease {
  private readonly api: Pick<Api, 'holdLease'>;
  private readonly ttlMs: number;
  private readonly clock: Clock;
  private readonly name = `sdk-${randomId()}`;
  private readonly closing = new AbortController();
  /** The latest; a failed one is forgotten. */
  private renewal: Promise<unknown> | undefined;
  private opened = false;
  private cancelNext = (): void => undefined;

  constructor(
    api: Pick<Api, 'holdLease'>,
    { leaseMs = DEFAULT_LEASE_MS }: LeaseOptions,
    clock = systemClock,
  ) {
    if (!(leaseMs >= MIN_LEASE_MS))
      throw new HoldfastError('invalid_input', `"leaseMs" must be at least ${MIN_LEASE_MS}.`);
    this.api = api;
    this.ttlMs = leaseMs;
    this.clock = clock;
  }

  /** Starts a process under this lease. A start waits for a pending renewal. */
  async start<T>(start: (name: string) => Promise<T>): Promise<T> {
    if (this.closing.signal.aborted)
      throw new HoldfastError('lease_ended', 'The connection is closed, and its lease has ended.');
    try {
      await (this.renewal ?? this.renew());
      return await start(this.name);
    } catch (error) {
      const isEnded = error instanceof HoldfastError && error.code === 'lease_ended';
      if (!isEnded || this.closing.signal.aborted) throw error;
      // This process or its machine was suspended for longer than the lease. A new lease is opened for this start.
      await this.renew();
      return start(this.name);
    }
  }

  /** Ends the lease and its processes. If the host cannot be reached, it ends them when the lease runs out. */
  async end(): Promise<void> {
    this.closing.abort();
    this.cancelNext();
    if (!this.opened) return;
    try {
      const timeout = AbortSignal.timeout(this.ttlMs);
      await this.api.holdLease({ name: this.name, ttlMs: 0 }, timeout);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
    }
  }

  private renew(): Promise<unknown> {
    const { name, ttlMs, clock, closing } = this;
    this.cancelNext();
    this.opened = true;
    const renewal = this.api.holdLease({ name, ttlMs }, closing.signal);
    this.renewal = renewal;
    const renewLater = (): void => {
      if (closing.signal.aborted || this.renewal !== renewal) return;
      this.cancelNext = clock.after(ttlMs / RENEWALS_PER_LEASE, () => void this.renew());
    };
    renewal.then(renewLater, () => {
      renewLater();
      // The next start retries and gets the error.
      if (this.renewal === renewal) this.renewal = undefined;
    });
    return renewal;
  }
}
