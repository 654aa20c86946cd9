// Counts measured times in buckets, as Prometheus and OpenTelemetry read them. Adding one allocates nothing.

/** `counts` has one number per bound, not cumulative, and one for everything above the last. */
export interface HistogramFigures {
  /** Upper bounds in seconds, inclusive. */
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  /** All measured times together. */
  readonly seconds: number;
}

/** What a local call takes. */
export const QUICK_BOUNDS = [
  0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
];
/** What a person or an agent waits for. */
export const LONG_BOUNDS = [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600];

export class Histogram {
  private readonly bounds: readonly number[];
  private readonly counts: Float64Array;
  private us = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(us: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && us > (bounds[at] ?? 0) * 1e6) at += 1;
    counts[at] = (counts[at] ?? 0) + 1;
    this.us += us;
  }

  figures(): HistogramFigures {
    return { bounds: this.bounds, counts: [...this.counts], seconds: this.us / 1e6 };
  }
}
