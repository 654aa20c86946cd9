// The files of one journal: appends to the newest segment, opens the next one in time, and drops whole segments from
// the middle when the journal reaches its size. A failed append leaves the file as it was before; the caller decides
// what to do with the bytes.

import type { Disk } from '../../base/disk.ts';
import type { DiskUsage } from './disk-usage.ts';
import { NextFile } from './next-file.ts';
import { bytesOf, piecesOf, type Part, type Stretch } from './part.ts';
import { SegmentFile, tryTo } from './segment-file.ts';
import { openingAt, readPart, removeSegments, Segment, segmentHeader } from '../read/segment.ts';
import type { Mark, RefusedRemoval, SegmentRange } from '../read/segment.ts';

export interface JournalPlace {
  readonly disk: Disk;
  readonly folder: string;
  readonly id: string;
  /** Kept up to date with what all journals of a folder occupy. */
  readonly usage: DiskUsage;
}

export interface FileLimits {
  readonly journalBytes: number;
  readonly journalHeadBytes: number;
}

/** More than an opening record has. */
const OPENING_BYTES = 256;
/** The next file is made when this one is filled to this part. */
const AHEAD_FROM = 0.75;
/** A full journal has about so many: fewer would drop more at once, and on ext4 a file can take half a millisecond to make. */
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
  /** Of the newest segment. */
  private current: SegmentFile | undefined;
  private lastNumber = 0;
  private removed = false;
  /** It has reached its size. */
  private beyond = false;
  private ahead: NextFile | undefined;
  private syncing: Promise<void> | undefined;

  constructor(place: JournalPlace, limits: FileLimits, wallMs: () => number) {
    this.place = place;
    this.limits = limits;
    this.wallMs = wallMs;
    this.segmentBytes = segmentBytesFor(limits);
  }

  /** Goes on after segments that were found on disk; the next append opens a new one. */
  adopt(segments: readonly Segment[]): void {
    this.segments.push(...segments);
    this.place.usage.add(this.bytesOnDisk);
    this.lastNumber = segments.at(-1)?.number ?? 0;
  }

  get bytesOnDisk(): number {
    const kept = this.segments.reduce((sum, segment) => sum + segment.size, 0);
    return kept + (this.current?.leftBytes ?? 0) + (this.ahead?.bytes ?? 0);
  }

  ranges(): SegmentRange[] {
    return this.segments.map((segment) => segment.range());
  }

  /** Creates the next segment. Its opening record is written with what follows, or at once when asked for. */
  openSegment(firstSeq: number, firstOffset: number): void {
    const { disk } = this.place;
    const fd = this.ahead?.take();
    if (fd !== undefined) this.ahead = undefined;
    this.closeSegment();
    const segment = this.nextSegment(firstSeq, firstOffset);
    if (fd === undefined) this.opened(segment, disk.create(segment.path), 0);
    else this.opened(segment, fd, disk.size(fd));
  }

  /** The same in the background, for a journal that nobody uses yet. */
  async openSegmentSoon(firstSeq: number, firstOffset: number): Promise<void> {
    const segment = this.nextSegment(firstSeq, firstOffset);
    this.opened(segment, await this.place.disk.createAsync(segment.path), 0);
  }

  /**
   * The same with the file of a journal that is over, which must be a first segment. Its opening record stays, before
   * our own: a file that was cut to nothing is written out by ext4 as soon as it is closed. False when it cannot be used;
   * it may be cut short then.
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
      // Whatever is wrong with the disk is found, and told, by those who need it.
      return false;
    } finally {
      const left = fd;
      if (left !== undefined) tryTo(() => disk.close(left));
    }
  }

  /** Its number is not used again: the file may still be on its way into the folder, or out of it. */
  private dropAhead(): void {
    const { ahead } = this;
    this.ahead = undefined;
    if (!ahead || ahead.failed) return;
    this.lastNumber = ahead.segment.number;
    if (ahead.coming) this.place.usage.makesUnwanted(ahead.made);
    ahead.drop();
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
    this.counted(this.current);
  }

  /** Shows whether the disk takes anything, by writing the opening record now. */
  probe(): void {
    const { firstSeq, firstOffset } = this.segments.at(-1) ?? { firstSeq: 1, firstOffset: 0 };
    const [endSeq, endOffset] = [firstSeq - 1, firstOffset];
    this.appendSync([{ firstSeq, firstOffset, endSeq, endOffset, bytes: 0, pieces: () => [] }]);
  }

  appendSync(parts: readonly [Part, ...Part[]]): void {
    const bytes = bytesOf(parts);
    const file = this.ready(bytes, parts[0]);
    try {
      this.makeLast(file, parts);
      file.writeSync(piecesOf(parts), bytes);
    } catch (error) {
      this.undo(file);
      throw error;
    }
    this.grew(file, parts);
  }

  /** The same by another thread. */
  async append(parts: readonly [Part, ...Part[]]): Promise<void> {
    const bytes = bytesOf(parts);
    if (this.waits(bytes)) await this.ahead?.made;
    // Removed while it waited: there is nothing to write to any more.
    if (this.removed) return;
    const file = this.ready(bytes, parts[0]);
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
    if (parts.at(-1)?.final === true && file.leftBytes > 0) this.cut(file);
  }

  /** Makes what has been written survive a loss of power. After a failure the file is not trusted again. */
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
    this.dropAhead();
    const { current } = this;
    if (current === undefined) return;
    this.current = undefined;
    current.close();
    this.counted(current);
  }

  remove(): RefusedRemoval[] {
    this.removed = true;
    this.closeSegment();
    for (const segment of this.segments) this.place.usage.add(-segment.size);
    // Now: a keeper that is killed before a thread has done it would leave a process that was removed.
    return removeSegments(this.segments.splice(0));
  }

  /**
   * Drops one more segment behind the head; answers the bytes gained, 0 when there is none to drop. Without a head even
   * the first segment is cut, to its beginning: that tells what was started.
   */
  shrink(headBytes = this.limits.journalHeadBytes): number {
    const dropped = this.dropOldest(headBytes);
    if (dropped) this.place.disk.removeInBackground(dropped.path);
    return dropped?.size ?? (headBytes === 0 ? this.cutFirst() : 0);
  }

  private cutFirst(): number {
    const { usage, disk } = this.place;
    const [first] = this.segments;
    const end = first?.marks.find(({ pos }) => pos >= SMALLEST_SEGMENT_BYTES);
    if (!first || !end || first.reading > 0 || this.current?.busy === true) return 0;
    const before = usage.bytes;
    if (this.current?.segment === first && !this.carryEnd(first, end)) return 0;
    disk.truncatePath(first.path, end.pos);
    usage.add(end.pos - first.size);
    first.cutAt(end);
    return before - usage.bytes;
  }

  /** The newest records go on in a segment of their own. False when that is all there is behind `from`, or the disk refuses. */
  private carryEnd(first: Segment, from: Mark): boolean {
    const { disk } = this.place;
    const start = first.marks.findLast(({ pos }) => first.size - pos >= SMALLEST_SEGMENT_BYTES);
    if (!start || start.pos < from.pos + SMALLEST_SEGMENT_BYTES) return false;
    const bytes = first.size - start.pos;
    const { endSeq, endOffset } = first;
    const part = { firstSeq: start.seq, firstOffset: start.offset, endSeq, endOffset, bytes };
    try {
      const newest = readPart(disk, first.path, start.pos, bytes);
      this.openSegment(start.seq, start.offset);
      this.appendSync([{ ...part, pieces: () => [newest] }]);
      return true;
    } catch {
      // Whatever is wrong with the disk is found, and told, by those who write next.
      return false;
    }
  }

  /** The oldest behind the head is none of ours any more; never the one being written. */
  private dropOldest(headBytes?: number): Segment | undefined {
    const index = this.headSegments(headBytes);
    if (this.segments.length - 1 <= index) return undefined;
    const [dropped] = this.segments.splice(index, 1);
    this.place.usage.add(-(dropped?.size ?? 0));
    return dropped;
  }

  private grew(file: SegmentFile, parts: readonly Part[]): void {
    for (const part of parts) if (part.bytes > 0) file.segment.grew(part.bytes, part);
    this.counted(file);
    if (file.segment.size > this.segmentBytes * AHEAD_FROM) this.ahead ??= this.nextFile();
  }

  /** What it occupies now, in place of what it did. */
  private counted(file: SegmentFile): void {
    const { occupies } = file;
    this.place.usage.add(occupies - file.counted);
    file.counted = occupies;
  }

  /** Nothing stands behind its records any more. */
  private cut(file: SegmentFile): void {
    try {
      file.cut();
    } finally {
      this.counted(file);
    }
  }

  /** The oldest gives its file when it has to be dropped for the next one, unless somebody is reading it. */
  private nextFile(): NextFile {
    const old = this.segments[this.headSegments()];
    const room = this.limits.journalBytes - this.bytesOnDisk;
    const dropped = this.beyond && room < this.segmentBytes && old?.reading === 0;
    const reused = dropped ? this.dropOldest() : undefined;
    return new NextFile(this.place.disk, this.nextSegment(0, 0), reused);
  }

  private ready(incoming: number, stretch: Stretch): SegmentFile {
    // While the next file is being made, this one takes a little more.
    if (!this.current || (this.full(incoming) && !this.waits(incoming)))
      this.openSegment(stretch.firstSeq, stretch.firstOffset);
    const file = this.current;
    if (file === undefined) throw new Error('no segment is open');
    this.makeRoom(Math.max(0, incoming - file.leftBytes));
    return file;
  }

  /** Is nearly at its end, and the next file is not there yet. */
  waits(incoming: number): boolean {
    return this.ahead?.coming === true && this.full(incoming);
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

  /** Drops the oldest segments behind the head until the incoming bytes fit; never the one being written. */
  private makeRoom(incoming: number): void {
    for (let over = this.bytesOnDisk + incoming - this.limits.journalBytes; over > 0;) {
      this.beyond = true;
      const gained = this.shrink();
      if (gained === 0) return;
      over -= gained;
    }
  }

  /**
   * How many segments at the beginning are the head. One that follows a dropped one is not, however small it is. The first
   * always is: a journal that does not tell what was started is taken for empty by the next keeper.
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

  /** After a failed write: cut what it may have left, and write no more into this file. */
  private undo(file: SegmentFile): void {
    const { segment } = file;
    tryTo(() => this.cut(file));
    this.closeSegment();
    if (segment.endSeq >= segment.firstSeq) return;
    this.segments.splice(this.segments.indexOf(segment), 1);
    this.place.usage.add(-segment.size);
    this.place.disk.removeInBackground(segment.path);
  }
}

/** Of the record that a segment begins with; 0 when it does not. */
function openingBytes(disk: Disk, fd: number): number {
  const start = Buffer.alloc(OPENING_BYTES);
  return openingAt(start.subarray(0, disk.readSync(fd, start, 0)), 0)?.end ?? 0;
}
