// When to look again at something that nobody tells: soon at first, then less and less often.

import type { Clock } from '../../base/clock.ts';

const MOST_MS = 1000;
/** Something happened that may have to do with it. */
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

  /** How long it is to the next look, once it is asked for. */
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

  /** Much at once makes no look of its own: the next one is near already. */
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

/** A look that is to come is not put off by what happens meanwhile. */
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
