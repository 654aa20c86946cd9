// Decides when to poll something that sends no notice: soon at first, then less and less often.

import type { Clock } from '../../base/clock.ts';

const MOST_MS = 1000;
/** Something happened that may be related. */
const SOONER_MS = 20;

export class Looks {
  private readonly clock: Clock;
  private readonly look: () => void;
  private nextMs = MOST_MS;
  private cancel: (() => void) | undefined;

  constructor(clock: Clock, look: () => void) {
    this.clock = clock;
    this.look = look;
  }

  /** The delay of the next poll. */
  from(ms: number): void {
    this.nextMs = ms;
  }

  go(): void {
    this.cancel?.();
    const ms = this.nextMs;
    this.cancel = this.clock.after(ms, () => {
      this.cancel = undefined;
      this.nextMs = Math.min(ms * 2, MOST_MS);
      this.look();
    });
  }

  /** Many events cause no poll of their own: the next one is near already. */
  sooner(): void {
    if (this.cancel === undefined || this.nextMs <= 2 * SOONER_MS) return;
    this.nextMs = SOONER_MS;
    this.go();
  }

  stop(): void {
    this.cancel?.();
    this.cancel = undefined;
  }
}

/** Later events do not postpone a scheduled poll. */
export class PatientLook {
  private readonly clock: Clock;
  private readonly firstMs: number;
  private readonly look: () => void;
  private nextMs: number;
  private cancel: (() => void) | undefined;

  constructor(clock: Clock, firstMs: number, look: () => void) {
    this.clock = clock;
    this.firstMs = firstMs;
    this.nextMs = firstMs;
    this.look = look;
  }

  later(): void {
    this.cancel ??= this.clock.after(this.nextMs, () => {
      this.cancel = undefined;
      this.nextMs = Math.min(this.nextMs * 2, MOST_MS);
      this.look();
    });
  }

  stop(): void {
    this.cancel?.();
    this.cancel = undefined;
    this.nextMs = this.firstMs;
  }
}
