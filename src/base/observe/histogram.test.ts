import { describe, expect, it } from 'vitest';
import { Histogram } from './histogram.ts';

describe('a histogram', () => {
  it('[API65] counts a time in the first bucket whose bound it does not exceed, and keeps the total', () => {
    const histogram = new Histogram([0.001, 0.01]);
    for (const us of [0, 1000, 1001, 10_000, 10_001, 5_000_000]) histogram.add(us);
    expect(histogram.figures()).toEqual({
      bounds: [0.001, 0.01],
      counts: [2, 2, 2],
      seconds: 5.022_002,
    });
  });
});
