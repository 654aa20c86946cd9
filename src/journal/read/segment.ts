// A segment: one file of a journal, and the stretch of events it holds. Also the names of those files.

import { join } from 'node:path';
import { errnoOf, type Disk } from '../../base/disk.ts';
import { HoldfastError, type ErrorCode } from '../../protocol/errors.ts';
import {
  checkRecord,
  encodeRecord,
  payloadOf,
  readHeader,
  SEGMENT_KIND,
  type RecordHeader,
} from '../../protocol/record.ts';

/** Somewhere that events can be read from: a file on disk, or a batch in memory. */
export interface Source {
  readonly firstSeq: number;
  readonly firstOffset: number;
  readonly endSeq: number;
  readonly endOffset: number;
  /** Bytes that hold good records. */
  readonly size: number;
  /** Places to begin reading, ascending: at `pos` stands the event `seq`, with `offset` output bytes before it. */
  readonly marks: readonly Mark[];
  readonly place: 'disk' | 'memory';
  /** Of a file. */
  readonly path?: string;
  read(position: number, maxBytes: number): Promise<Buffer>;
}

export interface Mark {
  readonly seq: number;
  readonly offset: number;
  readonly pos: number;
}

/** A mark at least this far apart: 64 MiB of journal then cost about 1,000 marks. */
const MARK_EVERY_BYTES = 64 * 1024;

const JOURNAL_FORMAT = 1;

/** Up to this much is read in the same turn: mostly it was written a moment ago, and a thread costs ten times as much. */
const SYNC_READ_BYTES = 32 * 1024;

export function segmentName(id: string, number: number): string {
  return `${id}.${String(number).padStart(4, '0')}.hfj`;
}

export function parseSegmentName(name: string): { id: string; number: number } | undefined {
  const match = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.(\d{4,9})\.hfj$/.exec(name);
  return match ? { id: match[1] ?? '', number: Number(match[2]) } : undefined;
}

export interface SegmentRange {
  readonly number: number;
  readonly firstSeq: number;
  readonly firstOffset: number;
  readonly endSeq: number;
  readonly endOffset: number;
  readonly size: number;
}

export class Segment implements Source {
  readonly place = 'disk';
  readonly number: number;
  readonly path: string;
  readonly firstSeq: number;
  readonly firstOffset: number;
  endSeq: number;
  endOffset: number;
  size: number;
  readonly marks: Mark[] = [];
  /** Of the record that its file begins with; 0 while that is not known. */
  openingBytes = 0;
  /** Reads under way. */
  reading = 0;
  private readonly disk: Disk;

  constructor(disk: Disk, folder: string, id: string, range: SegmentRange) {
    this.disk = disk;
    this.number = range.number;
    this.path = join(folder, segmentName(id, range.number));
    this.firstSeq = range.firstSeq;
    this.firstOffset = range.firstOffset;
    this.endSeq = range.endSeq;
    this.endOffset = range.endOffset;
    this.size = range.size;
  }

  range(): SegmentRange {
    const { number, firstSeq, firstOffset, endSeq, endOffset, size } = this;
    return { number, firstSeq, firstOffset, endSeq, endOffset, size };
  }

  /** Takes note of records that were written at the end. */
  grew(
    bytes: number,
    at: { firstSeq: number; firstOffset: number; endSeq: number; endOffset: number },
  ): void {
    const last = this.marks.at(-1);
    if (last === undefined || this.size - last.pos >= MARK_EVERY_BYTES) {
      this.marks.push({ seq: at.firstSeq, offset: at.firstOffset, pos: this.size });
    }
    this.size += bytes;
    this.endSeq = at.endSeq;
    this.endOffset = at.endOffset;
  }

  /** It held everything before the next segment, and does not any more: whoever asks for that is told of damage. */
  lacksUntil({ firstSeq, firstOffset }: { firstSeq: number; firstOffset: number }): void {
    this.endSeq = firstSeq - 1;
    this.endOffset = firstOffset;
  }

  /** What stood behind this mark is gone from the file. */
  cutAt({ pos, seq, offset }: Mark): void {
    this.size = pos;
    this.endSeq = seq - 1;
    this.endOffset = offset;
    this.marks.splice(this.marks.findIndex((mark) => mark.pos === pos));
  }

  remove(): void {
    this.disk.remove(this.path);
  }

  async read(position: number, maxBytes: number): Promise<Buffer> {
    const bytes = Math.max(0, Math.min(maxBytes, this.size - position));
    this.reading += 1;
    try {
      return await readFile(this.disk, { path: this.path, position }, Buffer.allocUnsafe(bytes));
    } catch (error) {
      throw readError(error);
    } finally {
      this.reading -= 1;
    }
  }
}

/** A file that the disk does not let go. */
export interface RefusedRemoval {
  readonly segment: Segment;
  readonly error: unknown;
}

/** None that the disk does not let go keeps the others. */
export function removeSegments(segments: Iterable<Segment>): RefusedRemoval[] {
  const refused: RefusedRemoval[] = [];
  for (const segment of segments) {
    try {
      segment.remove();
    } catch (error) {
      refused.push({ segment, error });
    }
  }
  return refused;
}

const READ_ERRORS: Readonly<Record<string, ErrorCode>> = {
  EMFILE: 'too_many_files',
  ENFILE: 'too_many_files',
  ENOMEM: 'no_memory',
};

/** ENOENT stays what it is: the segment was dropped meanwhile, and the reader looks again. */
function readError(error: unknown): unknown {
  const errno = errnoOf(error);
  if (errno === undefined || errno === 'ENOENT' || !(error instanceof Error)) return error;
  const code = READ_ERRORS[errno] ?? 'storage_unavailable';
  return new HoldfastError(code, `The journal cannot be read: ${error.message}.`, { errno });
}

/** Opens the file for each read: a descriptor shared with the writer could be closed, and its number reused, midway. */
export async function readFile(
  disk: Disk,
  from: { readonly path: string; readonly position: number },
  into: Buffer,
  /** It was written a moment ago, and is in memory: a thread would be woken for nothing. */
  fresh = false,
): Promise<Buffer> {
  const fd = disk.openRead(from.path);
  try {
    let filled = 0;
    while (filled < into.length) {
      const [rest, position] = [into.subarray(filled), from.position + filled];
      const now = fresh || rest.length <= SYNC_READ_BYTES;
      const got = now ? disk.readSync(fd, rest, position) : await disk.read(fd, rest, position);
      if (got === 0) break;
      filled += got;
    }
    return into.subarray(0, filled);
  } finally {
    disk.close(fd);
  }
}

/** So many bytes that a file holds, read now. */
export function readPart(disk: Disk, path: string, position: number, bytes: number): Buffer {
  const part = Buffer.allocUnsafe(bytes);
  const fd = disk.openRead(path);
  try {
    for (let filled = 0; filled < bytes;) {
      const got = disk.readSync(fd, part.subarray(filled), position + filled);
      if (got === 0) throw new Error(`${path} ends before its records do`);
      filled += got;
    }
    return part;
  } finally {
    disk.close(fd);
  }
}

/** The record that opens every segment, so that a file alone says whose it is and where it stands. */
export function segmentHeader(id: string, segment: SegmentRange, wallMs: number): Buffer {
  const payload = Buffer.from(
    JSON.stringify({ format: JOURNAL_FORMAT, id, number: segment.number }),
  );
  const { firstSeq: seq, firstOffset: offset } = segment;
  return encodeRecord({ kind: SEGMENT_KIND, stream: 0, seq, offset, atUs: 0, wallMs }, payload);
}

/** The record at this place that opens a segment: of which journal, with which number, and where it ends. */
export function openingAt(
  bytes: Buffer,
  at: number,
): (RecordHeader & { id: string; number: number; end: number }) | undefined {
  const check = checkRecord(bytes, at);
  if (check.kind !== 'good') return undefined;
  const header = readHeader(bytes, at);
  if (header.kind !== SEGMENT_KIND) return undefined;
  const text = payloadOf(bytes, at, check.bytes).toString('utf8');
  const { id, number } = JSON.parse(text) as { id: string; number: number };
  return { ...header, id, number, end: at + check.bytes };
}
