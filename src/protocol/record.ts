// The record: one event as bytes, the same on disk and in a page that crosses a socket.
//
//   0  u32  length of the payload
//   4  u32  CRC-32 of everything else in the record, length included
//   8  u8   kind (0 opens a segment)     9  u8  stream, 0 for none
//  10  u48  sequence number             16  u48  output bytes before it
//  22  u48  microseconds, monotonic     28  u48  milliseconds, wall clock
//  34       payload: raw bytes for output, JSON for the rest
//
// Little-endian. A reader checks the CRC before it uses anything else of a record.

import { crc32 } from '../base/bytes/crc32.ts';
import { eventKinds, streams, type EventBody, type EventKind, type ProcessEvent } from './event.ts';
import { MAX_RECORD_BYTES } from './limits.ts';

export const HEADER_BYTES = 34;
export const SEGMENT_KIND = 0;

const kindNames = new Map<number, EventKind>(
  Object.entries(eventKinds).map(([name, number]) => [number, name as EventKind]),
);

export interface RecordHeader {
  readonly kind: number;
  readonly stream: number;
  readonly seq: number;
  readonly offset: number;
  readonly atUs: number;
  readonly wallMs: number;
}

export function writeHeader(into: Buffer, at: number, header: RecordHeader): void {
  into[at + 8] = header.kind;
  into[at + 9] = header.stream;
  writeU48(into, at + 10, header.seq);
  writeU48(into, at + 16, header.offset);
  writeU48(into, at + 22, Math.max(0, header.atUs));
  writeU48(into, at + 28, Math.max(0, header.wallMs));
}

/** Node's writeUIntLE checks its arguments; this runs for every output event. */
function writeU48(into: Buffer, at: number, value: number): void {
  const high = Math.floor(value / 2 ** 32);
  const low = value - high * 2 ** 32;
  into[at] = low;
  into[at + 1] = low >>> 8;
  into[at + 2] = low >>> 16;
  into[at + 3] = low >>> 24;
  into[at + 4] = high;
  into[at + 5] = high >>> 8;
}

/** Writes length and CRC of a record whose header and payload are in place. */
export function sealRecord(into: Buffer, at: number, payloadBytes: number): void {
  into.writeUInt32LE(payloadBytes, at);
  into.writeUInt32LE(crcOf(into, at, payloadBytes), at + 4);
}

/** The header of a record whose payload is written from its own buffer. */
export function headOf(header: RecordHeader, payload: Buffer): Buffer {
  const head = Buffer.allocUnsafe(HEADER_BYTES);
  writeHeader(head, 0, header);
  head.writeUInt32LE(payload.length, 0);
  head.writeUInt32LE(crc32(payload, crcOf(head, 0, 0)), 4);
  return head;
}

export function encodeRecord(header: RecordHeader, payload: Buffer): Buffer {
  const record = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  writeHeader(record, 0, header);
  payload.copy(record, HEADER_BYTES);
  sealRecord(record, 0, payload.length);
  return record;
}

function crcOf(bytes: Buffer, at: number, payloadBytes: number): number {
  const length = crc32(bytes.subarray(at, at + 4));
  return crc32(bytes.subarray(at + 8, at + HEADER_BYTES + payloadBytes), length);
}

export type RecordCheck =
  | { readonly kind: 'good'; readonly bytes: number }
  /** The buffer ends before the record does. */
  | { readonly kind: 'short'; readonly needs: number }
  | { readonly kind: 'bad' };

/** Checks whether a whole good record, the beginning of one, or no record is at a position. */
export function checkRecord(bytes: Buffer, at: number): RecordCheck {
  const left = bytes.length - at;
  if (left < HEADER_BYTES) return { kind: 'short', needs: HEADER_BYTES };
  const payloadBytes = bytes.readUInt32LE(at);
  const kind = bytes[at + 8] ?? 255;
  if (payloadBytes > MAX_RECORD_BYTES || kind > 32) return { kind: 'bad' };
  const needs = HEADER_BYTES + payloadBytes;
  if (left < needs) return { kind: 'short', needs };
  if (bytes.readUInt32LE(at + 4) !== crcOf(bytes, at, payloadBytes)) return { kind: 'bad' };
  return { kind: 'good', bytes: needs };
}

export function readHeader(bytes: Buffer, at: number): RecordHeader {
  return {
    kind: bytes[at + 8] ?? 0,
    stream: bytes[at + 9] ?? 0,
    seq: bytes.readUIntLE(at + 10, 6),
    offset: bytes.readUIntLE(at + 16, 6),
    atUs: bytes.readUIntLE(at + 22, 6),
    wallMs: bytes.readUIntLE(at + 28, 6),
  };
}

export function payloadOf(bytes: Buffer, at: number, recordBytes: number): Buffer {
  return bytes.subarray(at + HEADER_BYTES, at + recordBytes);
}

/** Output bytes of a record: its payload, or the missing bytes of a gap. */
export function outputBytesOf(header: RecordHeader, payload: Buffer): number {
  if (header.kind === eventKinds.output) return payload.length;
  if (header.kind === eventKinds.gap) return (parseJson(payload) as { bytes: number }).bytes;
  return 0;
}

export function encodeBody(body: EventBody): { stream: number; payload: Buffer } {
  if (body.kind === 'output')
    return { stream: streams.indexOf(body.stream) + 1, payload: body.data };
  return { stream: 0, payload: Buffer.from(JSON.stringify(body.body)) };
}

function decodeEvent(header: RecordHeader, payload: Buffer): ProcessEvent {
  const { seq, offset, atUs, wallMs } = header;
  // Almost all events are output. Without object spread this takes a tenth of the time.
  if (header.kind === eventKinds.output) {
    const stream = streams[header.stream - 1] ?? 'merged';
    return { seq, offset, atUs, wallMs, kind: 'output', stream, data: payload };
  }
  const stamp = { seq, offset, atUs, wallMs };
  const kind = kindNames.get(header.kind);
  // A kind of a newer version: show an event that we cannot read as a gap.
  if (kind === undefined) {
    const body = {
      fromSeq: seq,
      bytes: 0,
      reason: `event kind ${header.kind} is unknown to this version`,
    };
    return { ...stamp, kind: 'gap', body };
  }
  return { ...stamp, kind, body: parseJson(payload) } as ProcessEvent;
}

/** Decodes the records of a page; their CRCs were checked when they were read. */
export function* decodeRecords(records: Buffer): Generator<ProcessEvent> {
  for (let at = 0; at < records.length;) {
    const bytes = HEADER_BYTES + (at + 4 <= records.length ? records.readUInt32LE(at) : 0);
    if (at + bytes > records.length) throw new Error(`a page ends within the record at byte ${at}`);
    const header = readHeader(records, at);
    if (header.kind !== SEGMENT_KIND) yield decodeEvent(header, payloadOf(records, at, bytes));
    at += bytes;
  }
}

function parseJson(payload: Buffer): unknown {
  return JSON.parse(payload.toString('utf8'));
}
