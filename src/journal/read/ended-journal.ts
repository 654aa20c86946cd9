// The journal of an ended process. It keeps only the positions of its segments, so that a thousand of them cost little.

import type { DiskUsage } from '../write/disk-usage.ts';
import type { Readable } from './reader.ts';
import { removeSegments, type RefusedRemoval, type Segment, type Source } from './segment.ts';

/** Below the size of pages that clients read from the file themselves. */
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
    // The only index point of a small journal is its beginning, which is known anyway.
    for (const { index } of segments) if (index.length < 2) index.length = 0;
    this.visibleSeq = end.seq;
    this.visibleOffset = end.offset;
    this.lostBytes = end.lostBytes;
  }

  sources(): readonly Source[] {
    return this.segments;
  }

  get bytesOnDisk(): number {
    return this.segments.reduce((total, segment) => total + segment.size, 0);
  }

  /** The file of a small journal, for reuse: it has no reader, and clients never read so small a page from the file. */
  get spareFile(): Segment | undefined {
    const [only, ...others] = this.segments;
    const small = only && only.number === 1 && only.size < SMALL_FILE_BYTES;
    return small && others.length === 0 && only.reading === 0 ? only : undefined;
  }

  /** All files but the last, which holds the end of the output: that is read most. */
  get filesBeforeLast(): readonly string[] {
    return this.segments.slice(0, -1).map(({ path }) => path);
  }

  /** Removes all files; returns those that could not be removed. */
  remove(usage: DiskUsage): RefusedRemoval[] {
    usage.add(-this.bytesOnDisk);
    return removeSegments(this.segments);
  }
}
