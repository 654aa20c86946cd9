// The asides of a process: the numbers of its events that are neither output nor an ending. With them a place among all
// events can be told as a place among the others alone, and back, although part of the journal may be gone.

import type { Page } from '../protocol/host-api.ts';

export class Asides {
  /** Ascending. The first event, `started`, is one. */
  private readonly seqs: number[] = [1];

  add(seq: number): void {
    this.seqs.push(seq);
  }

  /** How many there are up to and including this event. */
  upTo(seq: number): number {
    let [low, high] = [0, this.seqs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? Infinity) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The number of the event that is the n-th of those that are no asides; of the last aside before it when it has not come. */
  seqOf(count: number): number {
    // Each aside up to the place sought moves it on by one: looked for among the gaps between them.
    let [low, high] = [0, this.seqs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? Infinity) - middle <= count) low = middle + 1;
      else high = middle;
    }
    return count + low;
  }

  ofPage(after: number, nextAfter: number, visibleSeq: number): NonNullable<Page['asides']> {
    const before = this.upTo(after);
    const seqs = this.seqs.slice(before, this.upTo(nextAfter));
    return { before, after, seqs, count: visibleSeq - this.upTo(visibleSeq) };
  }
}
