// The files of one journal: appends to the newest segment, prepares the next one, and drops whole segments from the middle
// at the size limit. A failed append leaves the file as it was; the caller keeps the bytes.

import type { Disk } from '../../base/disk.ts';
import type { DiskUsage } from './disk-usage.ts';
import { NextFile } from './next-file.ts';
import { bytesOf, piecesOf, type EventRange, type Part } from './part.ts';
import { SegmentFile, tryTo } from './segment-file.ts';
import {
  openingAt,
  readFileSync,
  removeSegments,
  Segment,
  segmentHeader,
} from '../read/segment.ts';
import type { IndexPoint, RefusedRemoval, SegmentRange } from '../read/segment.ts';

export interface JournalPlace {
  readonly disk: Disk;
  readonly folder: string;
  readonly id: string;
  /** Counts what all journals of the folder occupy. */
  readonly usage: DiskUsage;
}

export interface FileLimits {
  readonly journalBytes: number;
  readonly journalHeadBytes: number;
}

/** More than the size of an opening record. */
const OPENING_BYTES = 256;
/** The next file is prepared when the current one is filled to this fraction. */
const PREPARE_FROM = 0.75;
/** Segments of a full journal: with fewer, each drop loses more; on ext4 creating a file can take half a millisecond. */
const SEGMENTS = 8;
const LARGEST_SEGMENT_BYTES = 8 * 1024 * 1024;
const SMALLEST_SEGMENT_BYTES = 64 * 1024;

function segmentBytesFor(limits: FileLimits): number {
  const share = Math.floor(limits.journalBytes / SEGMENTS);
  return Math.min(LARGEST_SEGMENT_BYTES, Math.max(SMALLEST_SEGMENT_BYTES, share));
}

export class JournalFile {
  readonly segments: Segment[] = [];
  readonly segmentBytes: number;
  private readonly place: JournalPlace;
  private readonly limits: FileLimits;
  private readonly wallMs: () => number;
  /** The file of the newest segment. */
  private current: SegmentFile | undefined;
  private lastNumber = 0;
  private removed = false;
  private atSizeLimit = false;
  private next: NextFile | undefined;
  private syncing: Promise<void> | undefined;

  constructor(place: JournalPlace, limits: FileLimits, wallMs: () => number) {
    this.place = place;
    this.limits = limits;
    this.wallMs = wallMs;
    this.segmentBytes = segmentBytesFor(limits);
  }

  /** Continues after segments that were found on disk; the next append opens a new one. */
  adopt(segments: readonly Segment[]): void {
    this.segments.push(...segments);
    this.place.usage.add(this.bytesOnDisk);
    this.lastNumber = segments.at(-1)?.number ?? 0;
  }

  get bytesOnDisk(): number {
    const kept = this.segments.reduce((total, segment) => total + segment.size, 0);
    return kept + (this.current?.leftBytes ?? 0) + (this.next?.bytes ?? 0);
  }

  ranges(): SegmentRange[] {
    return this.segments.map((segment) => segment.range());
  }

  /** Opens the next segment. Its opening record is written with the first records. */
  openSegment(firstSeq: number, firstOffset: number): void {
    const { disk } = this.place;
    const fd = this.next?.take();
    if (fd !== undefined) this.next = undefined;
    this.closeSegment();
    const segment = this.nextSegment(firstSeq, firstOffset);
    if (fd === undefined) this.opened(segment, disk.create(segment.path), 0);
    else this.opened(segment, fd, disk.size(fd));
  }

  /** The same in the thread pool, for a journal that is not in use yet. */
  async openSegmentAsync(firstSeq: number, firstOffset: number): Promise<void> {
    const segment = this.nextSegment(firstSeq, firstOffset);
    this.opened(segment, await this.place.disk.createAsync(segment.path), 0);
  }

  /**
   * The same with the first segment's file of a removed journal. Its opening record stays before our own, because ext4
   * writes out a file that was truncated to nothing when it is closed. False if it cannot be used; it may then be
   * truncated.
   */
  reuse(old: Segment): boolean {
    const { disk } = this.place;
    const segment = this.nextSegment(1, 0);
    let fd: number | undefined;
    try {
      fd = disk.openWrite(old.path);
      const kept = fd === undefined ? 0 : old.openingBytes || openingBytes(disk, fd);
      if (fd === undefined || kept === 0) return false;
      disk.truncate(fd, kept);
      disk.rename(old.path, segment.path);
      segment.size = segment.openingBytes = kept;
      this.opened(segment, fd, kept);
      fd = undefined;
      return true;
    } catch {
      // The next write reports what is wrong with the disk.
      return false;
    } finally {
      const left = fd;
      if (left !== undefined) tryTo(() => disk.close(left));
    }
  }

  /** Its number is not used again: a thread may still be creating or removing the file. */
  private dropNext(): void {
    const { next } = this;
    this.next = undefined;
    if (!next || next.failed) return;
    this.lastNumber = next.segment.number;
    if (next.isPending) this.place.usage.addUnwanted(next.ready);
    next.drop();
  }

  private nextSegment(firstSeq: number, firstOffset: number): Segment {
    const { disk, folder, id } = this.place;
    const number = this.lastNumber + 1;
    const endSeq = firstSeq - 1;
    const range = { number, firstSeq, firstOffset, endSeq, endOffset: firstOffset, size: 0 };
    return new Segment(disk, folder, id, range);
  }

  private opened(segment: Segment, fd: number, bytes: number): void {
    const { disk, id } = this.place;
    const header = segmentHeader(id, segment, this.wallMs());
    this.current = new SegmentFile(disk, { segment, fd, bytes, header });
    this.lastNumber = segment.number;
    this.segments.push(segment);
    this.count(this.current);
  }

  /** Tests the disk by writing the opening record. */
  probe(): void {
    const { firstSeq, firstOffset } = this.segments.at(-1) ?? { firstSeq: 1, firstOffset: 0 };
    const [endSeq, endOffset] = [firstSeq - 1, firstOffset];
    this.appendSync([{ firstSeq, firstOffset, endSeq, endOffset, bytes: 0, pieces: () => [] }]);
  }

  appendSync(parts: readonly [Part, ...Part[]]): void {
    const bytes = bytesOf(parts);
    const file = this.prepare(bytes, parts[0]);
    try {
      this.makeLast(file, parts);
      file.writeSync(piecesOf(parts), bytes);
    } catch (error) {
      this.undo(file);
      throw error;
    }
    this.grew(file, parts);
  }

  /** The same in the thread pool. */
  async append(parts: readonly [Part, ...Part[]]): Promise<void> {
    const bytes = bytesOf(parts);
    if (this.mustWaitForNext(bytes)) await this.next?.ready;
    if (this.removed) return;
    const file = this.prepare(bytes, parts[0]);
    try {
      this.makeLast(file, parts);
      await file.write(piecesOf(parts), bytes);
    } catch (error) {
      this.undo(file);
      throw error;
    }
    if (!this.removed) this.grew(file, parts);
  }

  /** The final record must be the last bytes of the file: truncate the leftovers of a reused file first. */
  private makeLast(file: SegmentFile, parts: readonly Part[]): void {
    if (parts.at(-1)?.final === true && file.leftBytes > 0) this.truncate(file);
  }

  /** Syncs the newest file. After a failed sync it is not written again. */
  sync(): Promise<void> {
    const file = this.current;
    if (file === undefined) return Promise.resolve();
    this.syncing ??= file
      .sync()
      .catch((error: unknown) => {
        if (this.current === file) this.closeSegment();
        throw error;
      })
      .finally(() => {
        this.syncing = undefined;
      });
    return this.syncing;
  }

  closeSegment(): void {
    this.dropNext();
    const { current } = this;
    if (current === undefined) return;
    this.current = undefined;
    current.close();
    this.count(current);
  }

  remove(): RefusedRemoval[] {
    this.removed = true;
    this.closeSegment();
    for (const segment of this.segments) this.place.usage.add(-segment.size);
    // In this thread: otherwise a keeper that is killed now would leave files of a removed process.
    return removeSegments(this.segments.splice(0));
  }

  /**
   * Drops one more segment after the head; returns the bytes freed, 0 if there is none to drop. With `headBytes` 0 even
   * the first segment is truncated to its beginning, which says what was started.
   */
  shrink(headBytes = this.limits.journalHeadBytes): number {
    const dropped = this.dropOldest(headBytes);
    if (dropped) this.place.disk.removeInBackground(dropped.path);
    return dropped?.size ?? (headBytes === 0 ? this.truncateFirst() : 0);
  }

  private truncateFirst(): number {
    const { usage, disk } = this.place;
    const [first] = this.segments;
    const end = first?.index.find(({ pos }) => pos >= SMALLEST_SEGMENT_BYTES);
    if (!first || !end || first.reading > 0 || this.current?.busy === true) return 0;
    const before = usage.bytes;
    if (this.current?.segment === first && !this.moveEnd(first, end)) return 0;
    disk.truncatePath(first.path, end.pos);
    usage.add(end.pos - first.size);
    first.truncatedAt(end);
    return before - usage.bytes;
  }

  /** Moves the newest records to a new segment. False if there is nothing else after `from`, or the disk refuses. */
  private moveEnd(first: Segment, from: IndexPoint): boolean {
    const { disk } = this.place;
    const start = first.index.findLast(({ pos }) => first.size - pos >= SMALLEST_SEGMENT_BYTES);
    if (!start || start.pos < from.pos + SMALLEST_SEGMENT_BYTES) return false;
    const bytes = first.size - start.pos;
    const { endSeq, endOffset } = first;
    const part = { firstSeq: start.seq, firstOffset: start.offset, endSeq, endOffset, bytes };
    try {
      const newest = readFileSync(disk, first.path, start.pos, bytes);
      if (newest.length < bytes) return false;
      this.openSegment(start.seq, start.offset);
      this.appendSync([{ ...part, pieces: () => [newest] }]);
      return true;
    } catch {
      // The next write reports what is wrong with the disk.
      return false;
    }
  }

  /** Removes the oldest segment after the head from the list; never the one being written. */
  private dropOldest(headBytes?: number): Segment | undefined {
    const index = this.headSegments(headBytes);
    if (this.segments.length - 1 <= index) return undefined;
    const [dropped] = this.segments.splice(index, 1);
    this.place.usage.add(-(dropped?.size ?? 0));
    return dropped;
  }

  private grew(file: SegmentFile, parts: readonly Part[]): void {
    for (const part of parts) if (part.bytes > 0) file.segment.grew(part.bytes, part);
    this.count(file);
    if (file.segment.size > this.segmentBytes * PREPARE_FROM) this.next ??= this.nextFile();
  }

  /** Updates the usage with what the file occupies now. */
  private count(file: SegmentFile): void {
    const { occupies } = file;
    this.place.usage.add(occupies - file.counted);
    file.counted = occupies;
  }

  private truncate(file: SegmentFile): void {
    try {
      file.truncate();
    } finally {
      this.count(file);
    }
  }

  /** Reuses the file of the oldest segment if that must be dropped anyway and has no reader. */
  private nextFile(): NextFile {
    const old = this.segments[this.headSegments()];
    const free = this.limits.journalBytes - this.bytesOnDisk;
    const dropped = this.atSizeLimit && free < this.segmentBytes && old?.reading === 0;
    const reused = dropped ? this.dropOldest() : undefined;
    return new NextFile(this.place.disk, this.nextSegment(0, 0), reused);
  }

  private prepare(incoming: number, { firstSeq, firstOffset }: EventRange): SegmentFile {
    // While a thread creates the next file, the current one may become larger.
    if (!this.current || (this.full(incoming) && !this.mustWaitForNext(incoming)))
      this.openSegment(firstSeq, firstOffset);
    const file = this.current;
    if (file === undefined) throw new Error('no segment is open');
    this.keepLimit(Math.max(0, incoming - file.leftBytes));
    return file;
  }

  /** The current file is full, and a thread is still creating the next one. */
  mustWaitForNext(incoming: number): boolean {
    return this.next?.isPending === true && this.full(incoming);
  }

  private get largestSegment(): number {
    return Math.max(SMALLEST_SEGMENT_BYTES, this.place.usage.segmentBytes);
  }

  private full(incoming: number): boolean {
    const current = this.segments.at(-1);
    return (
      current !== undefined &&
      current.endSeq >= current.firstSeq &&
      current.size + incoming > Math.min(this.segmentBytes, this.largestSegment)
    );
  }

  /** Drops the oldest segments after the head until the incoming bytes fit; never the one being written. */
  private keepLimit(incoming: number): void {
    for (let over = this.bytesOnDisk + incoming - this.limits.journalBytes; over > 0;) {
      this.atSizeLimit = true;
      const freed = this.shrink();
      if (freed === 0) return;
      over -= freed;
    }
  }

  /**
   * Number of segments that form the head. A segment after a dropped one does not belong to it. The first always does:
   * the next keeper takes a journal without its start for empty.
   */
  private headSegments(headBytes = this.limits.journalHeadBytes): number {
    let bytes = 0;
    const first = this.segments[0]?.number ?? 1;
    for (const [index, segment] of this.segments.entries()) {
      // An overfull segment counts as a full one, so that the head boundary does not move.
      bytes += Math.min(segment.size, this.segmentBytes);
      if (bytes > headBytes || segment.number !== first + index) return Math.max(1, index);
    }
    return this.segments.length;
  }

  /** After a failed write: truncates what it may have left, and closes the file. */
  private undo(file: SegmentFile): void {
    const { segment } = file;
    tryTo(() => this.truncate(file));
    this.closeSegment();
    if (segment.endSeq >= segment.firstSeq) return;
    this.segments.splice(this.segments.indexOf(segment), 1);
    this.place.usage.add(-segment.size);
    this.place.disk.removeInBackground(segment.path);
  }
}

/** Size of the opening record; 0 if there is none. */
function openingBytes(disk: Disk, fd: number): number {
  const start = Buffer.alloc(OPENING_BYTES);
  return openingAt(start.subarray(0, disk.readSync(fd, start, 0)), 0)?.end ?? 0;
}
