// What journals occupy on the disk.

/** What all journals of a folder occupy together, whom to tell when it is too much, and whether the disk refuses. */
export class DiskUsage {
  bytes = 0;
  private readonly limit: number;
  private readonly over: () => void;

  /** Journals that the disk takes nothing from at the moment, here and wherever the count is shared. */
  readonly refusals: { count: number };

  constructor(limit: number, over: () => void, refusals = { count: 0 }) {
    this.limit = limit;
    this.over = over;
    this.refusals = refusals;
  }

  add(delta: number): void {
    this.bytes += delta;
    if (delta > 0 && this.bytes > this.limit) this.over();
  }
}
