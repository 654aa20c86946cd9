// Opening journals that an earlier keeper left on disk. A finished one is known from its last record alone; an
// unfinished one is read through, its torn end is cut, and what it still tells is handed on.

import { readdirSync } from 'node:fs';
import type { Disk } from '../../base/disk.ts';
import type { Turns } from '../../base/turns.ts';
import {
  eventKinds,
  type ClosedBody,
  type ExitedBody,
  type StartedBody,
} from '../../protocol/event.ts';
import { checkRecord, outputBytesOf, payloadOf, readHeader } from '../../protocol/record.ts';
import type { RecordHeader } from '../../protocol/record.ts';
import { FOOTER_BYTES, FOOTER_MAGIC } from '../write/journal.ts';
import { nextGoodRecord } from './reader.ts';
import { END_MARK } from '../write/segment-file.ts';
import { openingAt, parseSegmentName, Segment, type SegmentRange } from './segment.ts';

export interface FinishedJournal {
  readonly kind: 'finished';
  readonly id: string;
  readonly closed: ClosedBody;
  readonly seq: number;
  readonly segments: readonly Segment[];
}

export interface UnfinishedJournal {
  readonly kind: 'unfinished';
  readonly id: string;
  readonly started: StartedBody;
  readonly startedWallMs: number;
  readonly exited: ExitedBody | undefined;
  readonly exitedWallMs: number | undefined;
  readonly seq: number;
  readonly offset: number;
  readonly lostBytes: number;
  readonly lastWallMs: number;
  /** Cut from the end: the last write was interrupted. */
  readonly tornBytes: number;
  readonly segments: readonly Segment[];
}

/** No process began in it: nothing was ever told to anyone, or it is the journal of something else. */
interface EmptyJournal {
  readonly kind: 'empty';
  readonly id: string;
  /** Also those in which nothing is readable. */
  readonly files: readonly Segment[];
  readonly segments: readonly Segment[];
}

export type FoundJournal = FinishedJournal | UnfinishedJournal | EmptyJournal;

/** Journal ids in a folder, with the numbers of their segments in order. */
export function listJournals(folder: string): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const name of readdirSync(folder)) {
    const parsed = parseSegmentName(name);
    if (parsed === undefined) continue;
    const numbers = found.get(parsed.id);
    if (numbers) numbers.push(parsed.number);
    else found.set(parsed.id, [parsed.number]);
  }
  for (const numbers of found.values()) numbers.sort((a, b) => a - b);
  return found;
}

export interface JournalLocation {
  readonly disk: Disk;
  readonly folder: string;
  readonly id: string;
  readonly numbers: readonly number[];
}

export function openJournal(location: JournalLocation): FoundJournal {
  const steps = opening(location);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** As `openJournal`, where others wait for this program: a piece of work is one segment at most. */
export async function openInTurns(location: JournalLocation, turns: Turns): Promise<FoundJournal> {
  const steps = opening(location);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (turns.isOver()) await turns.next();
  }
}

/** Yields after each segment that was read through. */
function* opening(location: JournalLocation): Generator<void, FoundJournal> {
  const finished = openFinished(location);
  if (finished) return finished;
  const used = withoutFilesMadeAhead(location);
  return (used !== location && openFinished(used)) || (yield* openUnfinished(used));
}

/** A killed keeper may have made the file of a segment ready that it never began; such a one is removed. */
function withoutFilesMadeAhead(location: JournalLocation): JournalLocation {
  const { disk, folder, id, numbers } = location;
  const [last, ...before] = numbers.toReversed();
  if (last === undefined || before.length === 0) return location;
  const { path } = new Segment(disk, folder, id, { ...UNKNOWN_RANGE, number: last });
  if (openingOf(readStart(disk, path), { id, number: last })) return location;
  try {
    disk.remove(path);
  } catch {
    // On a disk that cannot be written it stays, and recovery skips it every time.
  }
  return { ...location, numbers: before.toReversed() };
}

/** More than two opening records have. */
const START_BYTES = 1024;

function readStart(disk: Disk, path: string): Buffer {
  const fd = disk.openRead(path);
  try {
    const start = Buffer.alloc(START_BYTES);
    return start.subarray(0, disk.readSync(fd, start, 0));
  } finally {
    disk.close(fd);
  }
}

/**
 * The record that opens this segment, perhaps after one of a journal that had the file before, and where it ends.
 * Undefined for a file that was not begun as this segment.
 */
function openingOf(
  bytes: Buffer,
  own: { id: string; number: number },
): ReturnType<typeof openingAt> {
  for (let opening = openingAt(bytes, 0); opening; opening = openingAt(bytes, opening.end))
    if (opening.id === own.id && opening.number === own.number) return opening;
  return undefined;
}

const UNKNOWN_RANGE = { firstSeq: 0, firstOffset: 0, endSeq: 0, endOffset: 0, size: 0 };

function openFinished(location: JournalLocation): FinishedJournal | undefined {
  const { disk, folder, id, numbers } = location;
  const last = new Segment(disk, folder, id, { ...UNKNOWN_RANGE, number: numbers.at(-1) ?? 0 });
  const tail = readClosedRecord(disk, last.path);
  if (tail === undefined) return undefined;
  const { header, closed, recordBytes, fileBytes } = tail;
  const ranges = closed['segments'] as SegmentRange[];
  const present = new Set(numbers);
  const segments = ranges.filter(
    (range) => present.has(range.number) && range.number !== last.number,
  );
  const known = ranges.find((range) => range.number === last.number);
  const size = fileBytes - FOOTER_BYTES;
  segments.push({
    number: last.number,
    firstSeq: known?.firstSeq ?? header.seq,
    firstOffset: known?.firstOffset ?? header.offset,
    endSeq: header.seq,
    endOffset: header.offset,
    size: Math.max(size, recordBytes),
  });
  return {
    kind: 'finished',
    id,
    closed,
    seq: header.seq,
    segments: segments.map((range) => new Segment(disk, folder, id, range)),
  };
}

function readClosedRecord(
  disk: Disk,
  path: string,
):
  | { header: RecordHeader; closed: ClosedBody; recordBytes: number; fileBytes: number }
  | undefined {
  const fd = disk.openRead(path);
  try {
    const fileBytes = disk.size(fd);
    if (fileBytes <= FOOTER_BYTES) return undefined;
    const footer = Buffer.alloc(FOOTER_BYTES);
    disk.readSync(fd, footer, fileBytes - FOOTER_BYTES);
    const recordBytes = footer.readUInt32LE(0);
    if (!footer.subarray(4).equals(FOOTER_MAGIC) || recordBytes > fileBytes - FOOTER_BYTES)
      return undefined;
    const record = Buffer.alloc(recordBytes);
    disk.readSync(fd, record, fileBytes - FOOTER_BYTES - recordBytes);
    const check = checkRecord(record, 0);
    if (check.kind !== 'good' || check.bytes !== recordBytes) return undefined;
    const header = readHeader(record, 0);
    if (header.kind !== eventKinds.closed) return undefined;
    const closed = JSON.parse(payloadOf(record, 0, recordBytes).toString('utf8')) as ClosedBody;
    return { header, closed, recordBytes, fileBytes };
  } finally {
    disk.close(fd);
  }
}

interface Told {
  started?: StartedBody;
  startedWallMs?: number;
  exited?: ExitedBody;
  exitedWallMs?: number;
  lastWallMs: number;
  lostBytes: number;
}

function* openUnfinished(
  location: JournalLocation,
): Generator<void, UnfinishedJournal | EmptyJournal> {
  const { disk, folder, id, numbers } = location;
  const told: Told = { lastWallMs: 0, lostBytes: 0 };
  const segments: Segment[] = [];
  const files: Segment[] = [];
  let tornBytes = 0;
  /** The last of `segments` lacks what stood before the next one: its end, or a whole file, cannot be read. */
  let damaged = false;
  for (const number of numbers) {
    const segment = new Segment(disk, folder, id, { ...UNKNOWN_RANGE, number });
    files.push(segment);
    if (files.length > 1) yield;
    const bytes = readWhole(disk, segment.path);
    const scan = scanSegment(bytes, { id, number }, told);
    const isLast = number === numbers.at(-1);
    if (isLast && scan.range && scan.goodBytes < bytes.length) {
      if (!endsThere(bytes, scan.goodBytes)) tornBytes = bytes.length - scan.goodBytes;
      disk.truncatePath(segment.path, scan.goodBytes);
    }
    const before = segments.at(-1);
    if (damaged && before && scan.range) before.lacksUntil(scan.range);
    damaged = scan.range
      ? scan.goodBytes < bytes.length && !endsThere(bytes, scan.goodBytes)
      : damaged || bytes.length > 0;
    if (scan.range === undefined) continue;
    segments.push(new Segment(disk, folder, id, { ...scan.range, number, size: scan.goodBytes }));
  }
  const end = segments.at(-1);
  if (told.started === undefined || end === undefined)
    return { kind: 'empty', id, files, segments };
  return {
    kind: 'unfinished',
    id,
    started: told.started,
    startedWallMs: told.startedWallMs ?? 0,
    exited: told.exited,
    exitedWallMs: told.exitedWallMs,
    seq: end.endSeq,
    offset: end.endOffset,
    lostBytes: told.lostBytes,
    lastWallMs: told.lastWallMs,
    tornBytes,
    segments,
  };
}

interface Scan {
  readonly goodBytes: number;
  readonly range: Omit<SegmentRange, 'number' | 'size'> | undefined;
}

/** What stands behind the records is of the file's earlier use, and no unfinished write. */
function endsThere(bytes: Buffer, at: number): boolean {
  const mark = bytes.subarray(at, at + END_MARK.length);
  return mark.equals(END_MARK.subarray(0, mark.length));
}

/**
 * Walks a whole segment. A file without its opening record holds nothing. Damage in the middle is stepped over; what
 * follows the last good record is not good bytes, nor are records with numbers that were already had.
 */
function scanSegment(bytes: Buffer, own: { id: string; number: number }, told: Told): Scan {
  const opening = openingOf(bytes, own);
  if (!opening) return { goodBytes: 0, range: undefined };
  const { seq: firstSeq, offset: firstOffset } = opening;
  const range = { firstSeq, firstOffset, endSeq: firstSeq - 1, endOffset: firstOffset };
  let goodBytes = opening.end;
  for (let at = goodBytes; ;) {
    const check = checkRecord(bytes, at);
    const header = check.kind === 'good' ? readHeader(bytes, at) : undefined;
    if (check.kind !== 'good' || !header || header.seq <= range.endSeq) {
      const next = nextGoodRecord(bytes, at, { seq: range.endSeq + 1, offset: range.endOffset });
      if (next === undefined) return { goodBytes, range };
      at = next;
      continue;
    }
    const payload = payloadOf(bytes, at, check.bytes);
    range.endSeq = header.seq;
    range.endOffset = header.offset + outputBytesOf(header, payload);
    note(header, payload, told);
    at += check.bytes;
    goodBytes = at;
  }
}

function note(header: RecordHeader, payload: Buffer, told: Told): void {
  told.lastWallMs = header.wallMs;
  if (header.kind === eventKinds.gap) told.lostBytes += outputBytesOf(header, payload);
  if (header.kind === eventKinds.started) {
    told.started = JSON.parse(payload.toString('utf8')) as StartedBody;
    told.startedWallMs = header.wallMs;
  }
  if (header.kind === eventKinds.exited) {
    told.exited = JSON.parse(payload.toString('utf8')) as ExitedBody;
    told.exitedWallMs = header.wallMs;
  }
}

function readWhole(disk: Disk, path: string): Buffer {
  const fd = disk.openRead(path);
  try {
    const bytes = Buffer.allocUnsafe(disk.size(fd));
    let filled = 0;
    while (filled < bytes.length) {
      const got = disk.readSync(fd, bytes.subarray(filled), filled);
      if (got === 0) break;
      filled += got;
    }
    return bytes.subarray(0, filled);
  } finally {
    disk.close(fd);
  }
}
