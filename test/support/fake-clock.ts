// A clock whose hands the test moves. Timers fire in order when their time is passed.

import type { Clock } from '../../src/base/clock.ts';

export class FakeClock implements Clock {
  private nowMs = 1_000_000;
  private timers: { at: number; callback: () => void }[] = [];
  wallOffsetMs = 1_700_000_000_000;

  nowUs(): number {
    return this.nowMs * 1000;
  }

  wallMs(): number {
    return this.nowMs + this.wallOffsetMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.nowMs + ms, callback };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  }

  advance(ms: number): void {
    const until = this.nowMs + ms;
    for (;;) {
      const [next] = this.timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at);
      if (!next) break;
      this.timers = this.timers.filter((other) => other !== next);
      this.nowMs = Math.max(this.nowMs, next.at);
      next.callback();
    }
    this.nowMs = until;
  }

  /** Whether a timer is set for exactly this long from now. */
  pendingWithin(ms: number): boolean {
    return this.timers.some(({ at }) => at === this.nowMs + ms);
  }

  get pending(): number {
    return this.timers.length;
  }
}
