// A segment: one file of a journal and the range of events in it. Also the names of those files.

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

/** A source of events: a file on disk, or a batch in memory. */
export interface Source {
  readonly firstSeq: number;
  readonly firstOffset: number;
  readonly endSeq: number;
  readonly endOffset: number;
  /** Bytes that hold good records. */
  readonly size: number;
  /** Where a read can begin, ascending. */
  readonly index: readonly IndexPoint[];
  readonly place: 'disk' | 'memory';
  /** For a file. */
  readonly path?: string;
  read(position: number, maxBytes: number): Promise<Buffer>;
}

/** Event `seq`, with `offset` output bytes before it, begins at position `pos` of the file. */
export interface IndexPoint {
  readonly seq: number;
  readonly offset: number;
  readonly pos: number;
}

/** Least distance of index points: 64 MiB of journal then have about 1,000. */
const INDEX_EVERY_BYTES = 64 * 1024;

const JOURNAL_FORMAT = 1;

/** Up to this much is read in this thread: usually it is in the page cache, and a pool thread costs ten times as much. */
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
  readonly index: IndexPoint[] = [];
  /** Size of the opening record at the start of its file; 0 while unknown. */
  openingBytes = 0;
  /** Number of pending reads. */
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

  /** Records were written at the end. */
  grew(
    bytes: number,
    at: { firstSeq: number; firstOffset: number; endSeq: number; endOffset: number },
  ): void {
    const last = this.index.at(-1);
    if (last === undefined || this.size - last.pos >= INDEX_EVERY_BYTES) {
      this.index.push({ seq: at.firstSeq, offset: at.firstOffset, pos: this.size });
    }
    this.size += bytes;
    this.endSeq = at.endSeq;
    this.endOffset = at.endOffset;
  }

  /** Its end is missing up to the next segment: a reader of that part gets `damage`. */
  lacksUntil({ firstSeq, firstOffset }: { firstSeq: number; firstOffset: number }): void {
    this.endSeq = firstSeq - 1;
    this.endOffset = firstOffset;
  }

  /** Its file was truncated at this point. */
  truncatedAt({ pos, seq, offset }: IndexPoint): void {
    this.size = pos;
    this.endSeq = seq - 1;
    this.endOffset = offset;
    this.index.splice(this.index.findIndex((point) => point.pos === pos));
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

/** A file that could not be removed. */
export interface RefusedRemoval {
  readonly segment: Segment;
  readonly error: unknown;
}

/** Removes all of them, even if one fails. */
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

/** ENOENT is kept: the segment was dropped meanwhile, and the reader tries again. */
function readError(error: unknown): unknown {
  const errno = errnoOf(error);
  if (errno === undefined || errno === 'ENOENT' || !(error instanceof Error)) return error;
  const code = READ_ERRORS[errno] ?? 'storage_unavailable';
  return new HoldfastError(code, `The journal cannot be read: ${error.message}.`, { errno });
}

/** Opens the file for each read: a descriptor shared with the writer could be closed and reused during the read. */
export async function readFile(
  disk: Disk,
  from: { readonly path: string; readonly position: number },
  into: Buffer,
  /** It was just written and is in the page cache: read it in this thread. */
  fresh = false,
): Promise<Buffer> {
  const fd = disk.openRead(from.path);
  try {
    let filled = 0;
    while (filled < into.length) {
      const [rest, position] = [into.subarray(filled), from.position + filled];
      if (fresh || rest.length <= SYNC_READ_BYTES)
        return into.subarray(0, filled + fillNow(disk, fd, rest, position));
      const got = await disk.read(fd, rest, position);
      if (got === 0) break;
      filled += got;
    }
    return into.subarray(0, filled);
  } finally {
    disk.close(fd);
  }
}

/** The number of bytes read: fewer at the end of the file. */
function fillNow(disk: Disk, fd: number, into: Buffer, position: number): number {
  let filled = 0;
  while (filled < into.length) {
    const got = disk.readSync(fd, into.subarray(filled), position + filled);
    if (got === 0) break;
    filled += got;
  }
  return filled;
}

/** Reads `bytes` from `position` on, fewer at the end of the file. Without `bytes` it reads to the end. */
export function readFileSync(disk: Disk, path: string, position = 0, bytes?: number): Buffer {
  const fd = disk.openRead(path);
  try {
    const into = Buffer.allocUnsafe(bytes ?? disk.size(fd) - position);
    return into.subarray(0, fillNow(disk, fd, into, position));
  } finally {
    disk.close(fd);
  }
}

/** The record that opens every segment: names its journal, its number and its position. */
export function segmentHeader(id: string, segment: SegmentRange, wallMs: number): Buffer {
  const payload = Buffer.from(
    JSON.stringify({ format: JOURNAL_FORMAT, id, number: segment.number }),
  );
  const { firstSeq: seq, firstOffset: offset } = segment;
  return encodeRecord({ kind: SEGMENT_KIND, stream: 0, seq, offset, atUs: 0, wallMs }, payload);
}

/** Parses the opening record of a segment at this position; undefined if there is none. */
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
