// A journal that nothing will be added to: only where its segments are, so that a thousand ended processes cost little.

import type { DiskUsage } from '../write/disk-usage.ts';
import type { Readable } from './reader.ts';
import { removeSegments, type RefusedRemoval, type Segment, type Source } from './segment.ts';

/** Below the size of pages that readers fetch from the files themselves. */
const SMALL_FILE_BYTES = 32 * 1024;

export class EndedJournal implements Readable {
  readonly visibleSeq: number;
  readonly visibleOffset: number;
  readonly lostBytes: number;
  removed = false;
  private readonly segments: readonly Segment[];

  constructor(
    segments: readonly Segment[],
    end: { seq: number; offset: number; lostBytes: number },
  ) {
    this.segments = segments;
    // Of a small one the only mark is where it begins; those of large ones are bounded by the size of all journals.
    for (const { marks } of segments) if (marks.length < 2) marks.length = 0;
    this.visibleSeq = end.seq;
    this.visibleOffset = end.offset;
    this.lostBytes = end.lostBytes;
  }

  sources(): readonly Source[] {
    return this.segments;
  }

  get bytesOnDisk(): number {
    return this.segments.reduce((sum, segment) => sum + segment.size, 0);
  }

  /**
   * The file of a small one, for another journal: nobody reads it now, and of so little nobody was ever told where it
   * stands.
   */
  get spareFile(): Segment | undefined {
    const [only, ...others] = this.segments;
    const small = only && only.number === 1 && only.size < SMALL_FILE_BYTES;
    return small && others.length === 0 && only.reading === 0 ? only : undefined;
  }

  /** Of one with much output. Its end stays in memory: that is what people look at. */
  get filesBeforeLast(): readonly string[] {
    return this.segments.slice(0, -1).map(({ path }) => path);
  }

  /** Its files; none that the disk does not let go keeps the others. */
  remove(usage: DiskUsage): RefusedRemoval[] {
    usage.add(-this.bytesOnDisk);
    return removeSegments(this.segments);
  }
}
