// What journals occupy on the disk, and whether the disk is slow or refuses.

/** A write to the page cache takes a tenth of a millisecond; a longer one waits for the disk itself. */
const SLOW_US = 10_000;

/** From this fraction of the limit on, segments are small. */
const NEAR = 3 / 4;

/** Shared by all journals of a folder. */
export class DiskUsage {
  bytes = 0;
  /** The last write was slow: the next one goes to the thread pool. */
  slow = false;
  /** Journals that are being written. */
  journals = 0;
  private readonly limit: number;
  private readonly over: () => void;
  private readonly unwanted = new Set<Promise<void>>();

  /** Number of journals that cannot be written now, here and wherever this object is shared. */
  readonly refusals: { count: number };

  constructor(limit: number, over: () => void, refusals = { count: 0 }) {
    this.limit = limit;
    this.over = over;
    this.refusals = refusals;
  }

  /** The part of the limit for each journal that is being written. */
  get shareOfJournal(): number {
    return this.limit / Math.max(1, this.journals);
  }

  /**
   * The largest allowed segment. Small near the limit, because a segment is dropped as a whole, and the one being written
   * not at all.
   */
  get segmentBytes(): number {
    return this.bytes < this.limit * NEAR ? Infinity : this.shareOfJournal / 4;
  }

  /** A thread is creating a file that is no longer needed. */
  addUnwanted(created: Promise<void>): void {
    const done = created.finally(() => this.unwanted.delete(done));
    this.unwanted.add(done);
  }

  /** Resolves when no thread is creating an unneeded file. */
  async unwantedCreated(): Promise<void> {
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
