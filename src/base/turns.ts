// Splits long work into short slices, so that the event loop can do other work in between.

import { setImmediate as nextTurn } from 'node:timers/promises';

const TURN_MS = 5;

export class Turns {
  private readonly ms: number;
  private untilMs: number;

  /** `ms`: length of a slice. The step that exceeds it is still finished. */
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
