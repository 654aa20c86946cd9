// Reads a journal: a page of events after a number, or a range of output bytes, from files and memory. Every record is
// checked before it is returned. The answer says what is missing before it, with its size.

import { errnoOf } from '../../base/disk.ts';
import { eventKinds } from '../../protocol/event.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Missed } from '../../protocol/host-api.ts';
import {
  checkRecord,
  HEADER_BYTES,
  outputBytesOf,
  payloadOf,
  readHeader,
  SEGMENT_KIND,
} from '../../protocol/record.ts';
import type { RecordHeader } from '../../protocol/record.ts';
import type { Source } from './segment.ts';

export interface RawPage {
  /** Checked records, one after the other. */
  readonly records: Buffer;
  /** The last event of the page, read or skipped: `after` of the next read. */
  readonly nextAfter: number;
  /** Output bytes up to `nextAfter`. */
  readonly nextOffset: number;
  readonly missed?: Missed;
}

export interface FoundBytes {
  /** Where the bytes begin: later than requested if bytes are missing in between. */
  readonly offset: number;
  readonly bytes: Buffer;
  readonly missedBytes: number;
}

/** What a reader needs of a journal, live or ended. */
export interface Readable {
  sources(): readonly Source[];
  readonly visibleSeq: number;
  readonly visibleOffset: number;
  /** Its process and its files were deleted. */
  readonly removed: boolean;
}

/** An index point is at most this far before the wanted record: one batch. */
const LEAD_BYTES = 320 * 1024;

export interface PageRequest {
  readonly after: number;
  readonly maxBytes: number;
  /** Output bytes that the reader has; without it `missed` has an upper bound of the bytes. */
  readonly offset?: number | undefined;
  /** The last event of the page. */
  readonly until?: number | undefined;
}

/** A page of whole records after event `after`, at most `maxBytes` unless a single record is larger. */
export async function readPage(journal: Readable, request: PageRequest): Promise<RawPage> {
  const { after, maxBytes } = request;
  let gone: Source | undefined;
  for (;;) {
    const at = nextSource(journal, { key: 'endSeq', value: after }, gone);
    if (at === undefined)
      return { records: Buffer.alloc(0), nextAfter: after, nextOffset: journal.visibleOffset };
    const walk = await openWalk(at.source, { key: 'seq', value: after + 1 }, maxBytes);
    if (walk === 'gone') {
      gone = at.source;
      continue;
    }
    return collectPage(walk, { ...request, seen: request.offset ?? at.before?.endOffset ?? 0 });
  }
}

/** Output bytes from `offset` on, at most `maxBytes`, over all streams in journal order; undefined at the end. */
export async function readRange(
  journal: Readable,
  offset: number,
  maxBytes: number,
): Promise<FoundBytes | undefined> {
  let wanted = offset;
  let gone: Source | undefined;
  for (;;) {
    const at = nextSource(journal, { key: 'endOffset', value: wanted }, gone);
    if (at === undefined) return undefined;
    const walk = await openWalk(at.source, { key: 'offset', value: wanted }, maxBytes);
    if (walk === 'gone') {
      gone = at.source;
      continue;
    }
    const range = collectBytes(walk, wanted, maxBytes);
    if (range.bytes.length > 0) return { ...range, missedBytes: range.offset - offset };
    // Only a gap or damage is there: continue after it.
    wanted = Math.max(wanted + 1, at.source.endOffset);
  }
}

/**
 * The next source; undefined at the end. A source that is missing twice was not dropped by the size limit: the whole
 * journal was removed, or its file was deleted from outside. Both are errors, not an end.
 */
function nextSource(
  journal: Readable,
  from: { readonly key: 'endSeq' | 'endOffset'; readonly value: number },
  gone: Source | undefined,
): ReturnType<typeof locate> {
  const { key, value } = from;
  const at = locate(journal.sources(), (source) => source[key] > value);
  if (at && at.source !== gone) return at;
  const end = key === 'endSeq' ? journal.visibleSeq : journal.visibleOffset;
  if (journal.removed && value < end) throw removedError();
  if (!at) return undefined;
  const problem = `The journal cannot be read: ${at.source.path ?? 'a file'} is gone.`;
  throw new HoldfastError('storage_unavailable', problem, { errno: 'ENOENT' });
}

export function removedError(): HoldfastError {
  return new HoldfastError('not_found', 'The process and its journal have been removed.');
}

/** Binary search for the first source for which `holds` is true. */
export function locate(
  sources: readonly Source[],
  holds: (source: Source) => boolean,
): { source: Source; before: Source | undefined } | undefined {
  let low = 0;
  let high = sources.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const source = sources[middle];
    if (source !== undefined && holds(source)) high = middle;
    else low = middle + 1;
  }
  const source = sources[low];
  return source && { source, before: sources[low - 1] };
}

interface Target {
  readonly key: 'seq' | 'offset';
  readonly value: number;
}

interface Walk {
  readonly source: Source;
  readonly bytes: Buffer;
  /** Position in `bytes` of the first record of the answer. */
  readonly at: number;
  /** Where damage before `at` begins. */
  readonly damageFrom: Position | undefined;
}

export interface Position {
  readonly seq: number;
  readonly offset: number;
}

/** Reads the part of a source that begins with the wanted record. `gone`: the source was dropped meanwhile. */
async function openWalk(source: Source, target: Target, maxBytes: number): Promise<Walk | 'gone'> {
  let start = startFor(source, target);
  let length = maxBytes + LEAD_BYTES;
  for (;;) {
    let bytes: Buffer;
    try {
      bytes = await source.read(start.pos, length);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return 'gone';
      throw error;
    }
    const found = findFirst(bytes, start, target);
    const whole = start.pos + bytes.length >= source.size;
    if (found.complete) return { source, bytes, at: found.at, damageFrom: found.damageFrom };
    // The source ends without the record.
    if (whole)
      return { source, bytes, at: bytes.length, damageFrom: found.damageFrom ?? found.position };
    // The wanted record is larger than what was read, or comes later.
    if (found.at > 0 && found.damageFrom === undefined)
      start = { ...found.position, pos: start.pos + found.at };
    length = Math.max(length, found.needs);
    if (found.at === 0 || found.damageFrom !== undefined) length *= 2;
  }
}

function startFor(source: Source, target: Target): Position & { pos: number } {
  let start = { seq: source.firstSeq, offset: source.firstOffset, pos: 0 };
  for (const point of source.index) {
    if (point[target.key] > target.value) break;
    start = point;
  }
  return start;
}

interface Found {
  readonly at: number;
  readonly complete: boolean;
  readonly needs: number;
  readonly position: Position;
  readonly damageFrom: Position | undefined;
}

function findFirst(bytes: Buffer, start: Position, target: Target): Found {
  let position: Position = start;
  let damageFrom: Position | undefined;
  let at = 0;
  for (;;) {
    const check = checkRecord(bytes, at);
    if (check.kind === 'short')
      return { at, complete: false, needs: check.needs, position, damageFrom };
    if (check.kind === 'bad') {
      damageFrom ??= position;
      const next = nextGoodRecord(bytes, at, position);
      if (next === undefined) return { at, complete: false, needs: 0, position, damageFrom };
      at = next;
      continue;
    }
    const header = readHeader(bytes, at);
    const after = positionAfter(header, payloadOf(bytes, at, check.bytes));
    const last = target.key === 'seq' ? after.seq - 1 : after.offset - 1;
    if (header.kind !== SEGMENT_KIND && last >= target.value) {
      return { at, complete: true, needs: 0, position: header, damageFrom };
    }
    // Damage before the wanted record does not concern this reader.
    damageFrom = undefined;
    position = after;
    at += check.bytes;
  }
}

function positionAfter(header: RecordHeader, payload: Buffer): Position {
  if (header.kind === SEGMENT_KIND) return { seq: header.seq, offset: header.offset };
  return { seq: header.seq + 1, offset: header.offset + outputBytesOf(header, payload) };
}

/**
 * The next good record after damage at `badAt` that can follow `expected`. Output may itself contain records (a program
 * may print a journal), so number and offset must be reachable from `expected`.
 */
export function nextGoodRecord(
  bytes: Buffer,
  badAt: number,
  expected: Position,
): number | undefined {
  for (let at = badAt + 1; at + HEADER_BYTES <= bytes.length; at += 1) {
    // Cheap tests first: almost every wrong position fails them.
    const kind = bytes[at + 8] ?? 255;
    if (kind === 0 || kind > eventKinds.gap) continue;
    const newEvents = bytes.readUIntLE(at + 10, 6) - expected.seq;
    if (newEvents < 0 || newEvents > (at - badAt) / HEADER_BYTES) continue;
    const newBytes = bytes.readUIntLE(at + 16, 6) - expected.offset;
    if (newBytes < 0 || newBytes > at - badAt) continue;
    if (checkRecord(bytes, at).kind === 'good') return at;
  }
  return undefined;
}

function collectPage(walk: Walk, want: PageRequest & { readonly seen: number }): RawPage {
  const { bytes, source } = walk;
  const { until = Infinity } = want;
  let end = walk.at;
  let next: Position | undefined;
  let first: RecordHeader | undefined;
  while (end < bytes.length) {
    const check = checkRecord(bytes, end);
    if (
      check.kind !== 'good' ||
      (first !== undefined && end + check.bytes - walk.at > want.maxBytes)
    )
      break;
    const header = readHeader(bytes, end);
    if (header.seq > source.endSeq || (first !== undefined && header.seq > until)) break;
    first ??= header;
    next = positionAfter(header, payloadOf(bytes, end, check.bytes));
    end += check.bytes;
  }
  const missed = missedBefore(walk, first, want);
  const reached = next ?? { seq: source.endSeq + 1, offset: source.endOffset };
  return {
    records: bytes.subarray(walk.at, end),
    nextAfter: reached.seq - 1,
    nextOffset: reached.offset,
    ...(missed && { missed }),
  };
}

function missedBefore(
  walk: Walk,
  first: RecordHeader | undefined,
  want: { after: number; seen: number },
): Missed | undefined {
  const fromSeq = want.after + 1;
  const until = first ?? { seq: walk.source.endSeq + 1, offset: walk.source.endOffset };
  // A gap record has the number of the last event that it stands for.
  const covered = first?.kind === eventKinds.gap;
  if (until.seq <= fromSeq || covered) return undefined;
  if (walk.damageFrom) {
    const bytes = until.offset - walk.damageFrom.offset;
    return { fromSeq, toSeq: until.seq - 1, bytes, reason: 'damage' };
  }
  const bytes = until.offset - want.seen;
  return {
    fromSeq,
    toSeq: until.seq - 1,
    bytes,
    reason: walk.source.place === 'memory' ? 'storage' : 'limit',
  };
}

function collectBytes(
  walk: Walk,
  wanted: number,
  maxBytes: number,
): { offset: number; bytes: Buffer } {
  const parts: Buffer[] = [];
  let length = 0;
  let offset = wanted;
  let expected: number | undefined;
  for (let at = walk.at; at < walk.bytes.length && length < maxBytes;) {
    const check = checkRecord(walk.bytes, at);
    if (check.kind !== 'good') break;
    const header = readHeader(walk.bytes, at);
    const payload = payloadOf(walk.bytes, at, check.bytes);
    at += check.bytes;
    if (header.kind === eventKinds.gap && length > 0) break;
    if (header.kind !== eventKinds.output) continue;
    const skip = Math.max(0, wanted - header.offset);
    if (expected === undefined) offset = header.offset + skip;
    else if (header.offset !== expected) break;
    const part = payload.subarray(skip, skip + maxBytes - length);
    parts.push(part);
    length += part.length;
    expected = header.offset + payload.length;
  }
  return { offset, bytes: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts) };
}
