// What journals occupy on the disk, and how it bears that.

/** A write to the page cache takes a tenth of a millisecond: whoever waits for longer waits for the disk itself. */
const SLOW_US = 10_000;

/** Of the limit. */
const NEAR = 3 / 4;

/** What all journals of a folder occupy together, whom to tell when it is too much, and whether the disk refuses or is slow. */
export class DiskUsage {
  bytes = 0;
  /** The last write had to wait: the next one is left to a thread. */
  slow = false;
  /** Journals that are being written. */
  journals = 0;
  private readonly limit: number;
  private readonly over: () => void;
  private readonly unwanted = new Set<Promise<void>>();

  /** Journals that the disk takes nothing from at the moment, here and wherever the count is shared. */
  readonly refusals: { count: number };

  constructor(limit: number, over: () => void, refusals = { count: 0 }) {
    this.limit = limit;
    this.over = over;
    this.refusals = refusals;
  }

  /** What each of the journals that are being written may have of the limit. */
  get shareOfJournal(): number {
    return this.limit / Math.max(1, this.journals);
  }

  /**
   * The largest segment that may be begun or gone on with. Where the limit is near, small ones: a segment is dropped as a
   * whole, and the one being written not at all.
   */
  get segmentBytes(): number {
    return this.bytes < this.limit * NEAR ? Infinity : this.shareOfJournal / 4;
  }

  /** A thread is making a file that nobody needs any more. */
  makesUnwanted(made: Promise<void>): void {
    const done = made.finally(() => this.unwanted.delete(done));
    this.unwanted.add(done);
  }

  /** Resolves when no thread makes a file any more. */
  async makesNone(): Promise<void> {
    await Promise.all(this.unwanted);
  }

  wrote(tookUs: number): void {
    this.slow = tookUs > SLOW_US;
  }

  add(delta: number): void {
    this.bytes += delta;
    if (delta > 0 && this.bytes > this.limit) this.over();
  }
}
