// Shows how far long work has come, in the last line of a terminal. Nothing when piped, and nothing for short work.

import type { Output } from './output.ts';

/** Work that takes less needs no words. */
const SILENT_MS = 500;
const BETWEEN_MS = 200;

export class Progress {
  private readonly out: Output;
  private readonly words: (done: number, total: number) => string;
  private readonly now: () => number;
  private nextMs: number;

  constructor(
    out: Output,
    words: (done: number, total: number) => string,
    now = (): number => performance.now(),
  ) {
    this.out = out;
    this.words = words;
    this.now = now;
    this.nextMs = now() + SILENT_MS;
  }

  at(done: number, total: number): void {
    const now = this.now();
    if (now < this.nextMs || !this.out.watched) return;
    this.nextMs = now + BETWEEN_MS;
    const share = total > 0 ? ` (${Math.min(100, Math.floor((100 * done) / total))} %)` : '';
    this.out.live(`${this.words(done, total)}${share}`);
  }
}
