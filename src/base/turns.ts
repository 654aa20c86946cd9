// Long work in short pieces: whatever else the event loop has to do gets its turn in between.

import { setImmediate as nextTurn } from 'node:timers/promises';

const TURN_MS = 5;

export class Turns {
  private readonly ms: number;
  private untilMs: number;

  /** `ms`: how long one piece may take; it is as much longer as the step takes that ends it. */
  constructor(ms = TURN_MS) {
    this.ms = ms;
    this.untilMs = performance.now() + ms;
  }

  isOver(): boolean {
    return performance.now() >= this.untilMs;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.untilMs = performance.now() + this.ms;
  }
}
