// A batch of encoded events that are written together. Output joins the last event of the batch if that is output of the
// same stream.

import type { EventStamp } from '../../protocol/event.ts';
import { HEADER_BYTES, sealRecord, writeHeader, type RecordHeader } from '../../protocol/record.ts';

export class Batch {
  readonly buffer: Buffer;
  readonly firstSeq: number;
  readonly firstOffset: number;
  endSeq: number;
  endOffset: number;
  bytes = 0;
  /** A single gap record for dropped events. */
  readonly gap: boolean;
  /** Ends the file. */
  final = false;
  private readonly capacity: number;
  /** Position of the event that can be extended, or -1. */
  private openAt = -1;
  private openStream = 0;

  constructor(
    buffer: Buffer,
    options: { firstSeq: number; firstOffset: number; capacity?: number; gap?: true },
  ) {
    this.buffer = buffer;
    this.firstSeq = options.firstSeq;
    this.firstOffset = options.firstOffset;
    this.endSeq = options.firstSeq - 1;
    this.endOffset = options.firstOffset;
    this.capacity = Math.min(buffer.length, options.capacity ?? buffer.length);
    this.gap = options.gap ?? false;
  }

  get empty(): boolean {
    return this.bytes === 0;
  }

  fits(payloadBytes: number): boolean {
    return this.bytes + HEADER_BYTES + payloadBytes <= this.capacity;
  }

  add(header: RecordHeader, payload: Buffer, outputBytes = 0): void {
    this.seal();
    writeHeader(this.buffer, this.bytes, header);
    payload.copy(this.buffer, this.bytes + HEADER_BYTES);
    sealRecord(this.buffer, this.bytes, payload.length);
    this.bytes += HEADER_BYTES + payload.length;
    this.endSeq = header.seq;
    this.endOffset = header.offset + outputBytes;
  }

  /** Adds bytes after the last record that are not a record. */
  addFooter(footer: Buffer): void {
    footer.copy(this.buffer, this.bytes);
    this.bytes += footer.length;
    this.final = true;
  }

  /** Begins an output event; `extend` adds its bytes. */
  openOutput(stamp: EventStamp, kind: number, stream: number): void {
    this.seal();
    const { seq, offset, atUs, wallMs } = stamp;
    writeHeader(this.buffer, this.bytes, { kind, stream, seq, offset, atUs, wallMs });
    this.openAt = this.bytes;
    this.openStream = stream;
    this.bytes += HEADER_BYTES;
    this.endSeq = stamp.seq;
  }

  /** Adds as much as fits to the open output event; returns the bytes added. */
  extend(stream: number, bytes: Buffer, maxEventBytes: number): number {
    if (this.openAt < 0 || this.openStream !== stream) return 0;
    const soFar = this.bytes - this.openAt - HEADER_BYTES;
    const count = Math.min(maxEventBytes - soFar, this.capacity - this.bytes, bytes.length);
    if (count <= 0) return 0;
    bytes.copy(this.buffer, this.bytes, 0, count);
    this.bytes += count;
    this.endOffset += count;
    return count;
  }

  seal(): void {
    if (this.openAt < 0) return;
    sealRecord(this.buffer, this.openAt, this.bytes - this.openAt - HEADER_BYTES);
    this.openAt = -1;
  }

  view(): Buffer {
    this.seal();
    return this.buffer.subarray(0, this.bytes);
  }

  pieces(): readonly Buffer[] {
    return [this.view()];
  }
}
