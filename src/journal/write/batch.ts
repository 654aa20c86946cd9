// A batch: events encoded one behind the other, waiting to be written together. Output of one stream that arrives while
// its event is still the last of the batch joins that event.

import type { EventStamp } from '../../protocol/event.ts';
import { HEADER_BYTES, sealRecord, writeHeader, type RecordHeader } from '../../protocol/record.ts';

export class Batch {
  readonly buffer: Buffer;
  readonly firstSeq: number;
  readonly firstOffset: number;
  endSeq: number;
  endOffset: number;
  bytes = 0;
  /** Stands for events that were dropped: a single gap record. */
  readonly gap: boolean;
  /** Nothing may come behind it. */
  final = false;
  private readonly capacity: number;
  /** Where the event that still takes output begins, or -1. */
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

  /** Bytes behind the last record that are no record themselves. */
  addFooter(footer: Buffer): void {
    footer.copy(this.buffer, this.bytes);
    this.bytes += footer.length;
    this.final = true;
  }

  /** Begins an output event; `extend` gives it its bytes. */
  openOutput(stamp: EventStamp, kind: number, stream: number): void {
    this.seal();
    const { seq, offset, atUs, wallMs } = stamp;
    writeHeader(this.buffer, this.bytes, { kind, stream, seq, offset, atUs, wallMs });
    this.openAt = this.bytes;
    this.openStream = stream;
    this.bytes += HEADER_BYTES;
    this.endSeq = stamp.seq;
  }

  /** Adds to the open output event as much as it may take; 0 when it cannot take any. */
  extend(stream: number, bytes: Buffer, maxEventBytes: number): number {
    if (this.openAt < 0 || this.openStream !== stream) return 0;
    const soFar = this.bytes - this.openAt - HEADER_BYTES;
    const room = Math.min(maxEventBytes - soFar, this.capacity - this.bytes, bytes.length);
    if (room <= 0) return 0;
    bytes.copy(this.buffer, this.bytes, 0, room);
    this.bytes += room;
    this.endOffset += room;
    return room;
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

  /** As a journal's file takes it. */
  pieces(): readonly Buffer[] {
    return [this.view()];
  }
}
