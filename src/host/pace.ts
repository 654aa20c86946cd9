// The pace of a process: how far its output may run ahead of a reader that asked for this. A reader that has not read for
// a while counts as gone, and holds nobody back any more.

import type { Clock } from '../base/clock.ts';

/** A reader that is alive but has no room asks again within this time. */
const PATIENCE_MS = 10_000;

export class Pace {
  private readonly clock: Clock;
  private readonly release: () => void;
  private limitOffset = Infinity;
  private cancel: (() => void) | undefined;
  holding = false;

  /** `release` is called when the child may go on. */
  constructor(clock: Clock, release: () => void) {
    this.clock = clock;
    this.release = release;
  }

  /** The reader has come this far, and wants no more than that much beyond. */
  reader(limitOffset: number, offset: number): void {
    this.limitOffset = limitOffset;
    this.cancel?.();
    this.cancel = this.clock.after(PATIENCE_MS, () => this.gone());
    if (this.holding && offset <= limitOffset) this.goOn();
  }

  /** Output has come up to here. True: the child is to be held. */
  exceeded(offset: number): boolean {
    if (offset <= this.limitOffset) return false;
    this.holding = true;
    return true;
  }

  gone(): void {
    this.cancel?.();
    this.cancel = undefined;
    this.limitOffset = Infinity;
    if (this.holding) this.goOn();
  }

  private goOn(): void {
    this.holding = false;
    this.release();
  }
}
