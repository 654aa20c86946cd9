// Opens journals of an earlier keeper. A finished one needs only its last record; an unfinished one is scanned, and its
// torn end is truncated.

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
import {
  openingAt,
  parseSegmentName,
  readFileSync,
  Segment,
  type SegmentRange,
} from './segment.ts';

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
  /** Truncated at the end: the last write was interrupted. */
  readonly tornBytes: number;
  readonly segments: readonly Segment[];
}

/** No process started in it, or it is not the journal of a process. */
interface EmptyJournal {
  readonly kind: 'empty';
  readonly id: string;
  /** All files, also unreadable ones. */
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

/** As `openJournal`, in slices of at most one segment, so that the program can do other work in between. */
export async function openInTurns(location: JournalLocation, turns: Turns): Promise<FoundJournal> {
  const steps = opening(location);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (turns.isOver()) await turns.next();
  }
}

/** Yields after each scanned segment. */
function* opening(location: JournalLocation): Generator<void, FoundJournal> {
  const finished = openFinished(location);
  if (finished) return finished;
  const used = removePreparedFile(location);
  return (used !== location && openFinished(used)) || (yield* openUnfinished(used));
}

/** Removes the file of a next segment that a killed keeper had prepared and not used. */
function removePreparedFile(location: JournalLocation): JournalLocation {
  const { disk, folder, id, numbers } = location;
  const [last, ...before] = numbers.toReversed();
  if (last === undefined || before.length === 0) return location;
  const { path } = new Segment(disk, folder, id, { ...UNKNOWN_RANGE, number: last });
  const start = readFileSync(disk, path, 0, START_BYTES);
  if (openingOf(start, { id, number: last })) return location;
  try {
    disk.remove(path);
  } catch {
    // On a read-only disk it stays, and every recovery skips it.
  }
  return { ...location, numbers: before.toReversed() };
}

/** More than the size of two opening records. */
const START_BYTES = 1024;

/** The opening record of this segment, perhaps after that of an earlier journal; undefined if the file has none. */
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

/** What the scanned events say about the process. */
interface Summary {
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
  const summary: Summary = { lastWallMs: 0, lostBytes: 0 };
  const segments: Segment[] = [];
  const files: Segment[] = [];
  let tornBytes = 0;
  /** Records are missing between the last of `segments` and the next one: its end or a whole file cannot be read. */
  let damaged = false;
  for (const number of numbers) {
    const segment = new Segment(disk, folder, id, { ...UNKNOWN_RANGE, number });
    files.push(segment);
    if (files.length > 1) yield;
    const bytes = readFileSync(disk, segment.path);
    const scan = scanSegment(bytes, { id, number }, summary);
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
  if (summary.started === undefined || end === undefined)
    return { kind: 'empty', id, files, segments };
  return {
    kind: 'unfinished',
    id,
    started: summary.started,
    startedWallMs: summary.startedWallMs ?? 0,
    exited: summary.exited,
    exitedWallMs: summary.exitedWallMs,
    seq: end.endSeq,
    offset: end.endOffset,
    lostBytes: summary.lostBytes,
    lastWallMs: summary.lastWallMs,
    tornBytes,
    segments,
  };
}

interface Scan {
  readonly goodBytes: number;
  readonly range: Omit<SegmentRange, 'number' | 'size'> | undefined;
}

/** The bytes after the records are leftovers of a reused file, not an interrupted write. */
function endsThere(bytes: Buffer, at: number): boolean {
  const mark = bytes.subarray(at, at + END_MARK.length);
  return mark.equals(END_MARK.subarray(0, mark.length));
}

/**
 * Scans a whole segment. A file without its opening record counts as empty. Damage in the middle is skipped. Bytes after
 * the last good record, and records with earlier numbers, are not good bytes.
 */
function scanSegment(bytes: Buffer, own: { id: string; number: number }, summary: Summary): Scan {
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
    note(header, payload, summary);
    at += check.bytes;
    goodBytes = at;
  }
}

function note(header: RecordHeader, payload: Buffer, summary: Summary): void {
  summary.lastWallMs = header.wallMs;
  if (header.kind === eventKinds.gap) summary.lostBytes += outputBytesOf(header, payload);
  if (header.kind === eventKinds.started) {
    summary.started = JSON.parse(payload.toString('utf8')) as StartedBody;
    summary.startedWallMs = header.wallMs;
  }
  if (header.kind === eventKinds.exited) {
    summary.exited = JSON.parse(payload.toString('utf8')) as ExitedBody;
    summary.exitedWallMs = header.wallMs;
  }
}
