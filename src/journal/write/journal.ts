// The journal of a process that can still grow: numbers the events, passes them to the write queue, and wakes waiters.
// Only written events are visible (or, while the disk refuses, events in memory), so that killing this program loses
// nothing that a reader has seen.

import type { BufferPool } from '../../base/bytes/buffer-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { eventKinds, streams } from '../../protocol/event.ts';
import type { EventBody, EventStamp, Stream } from '../../protocol/event.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { MAX_OUTPUT_EVENT_BYTES, MAX_RECORD_BYTES } from '../../protocol/limits.ts';
import { encodeBody, headOf, HEADER_BYTES } from '../../protocol/record.ts';
import { type DiskUsage } from './disk-usage.ts';
import { JournalFile, type FileLimits, type JournalPlace } from './journal-file.ts';
import { WriteQueue } from './write-queue.ts';
import { removedError } from '../read/reader.ts';
import type { RefusedRemoval, Segment, Source } from '../read/segment.ts';

export interface JournalLimits extends FileLimits {
  readonly memoryBytes: number;
}

export interface JournalOptions {
  readonly place: JournalPlace;
  readonly limits: JournalLimits;
  readonly clock: Clock;
  readonly pool: BufferPool;
  /** The state before the first append, when the journal continues after a crash. */
  readonly after?: {
    readonly segments: readonly Segment[];
    readonly seq: number;
    readonly offset: number;
    readonly lostBytes: number;
  };
}

/** The summary of a process in a finished journal. */
export interface ClosedSummary {
  readonly facts?: object;
  readonly ending?: object;
}

/** Follows the last record of a finished journal and its length, so that a reader finds that record from the end. */
export const FOOTER_MAGIC = Buffer.from('HFCLOSED');
export const FOOTER_BYTES = 4 + FOOTER_MAGIC.length;

interface Viewer {
  readonly target: number;
  readonly resolve: () => void;
  readonly reject: (error: HoldfastError) => void;
}

const NOTHING = Buffer.alloc(0);
/** Smaller output is collected in a batch, to save system calls. */
const WRITE_THROUGH_BYTES = 16 * 1024;

export class Journal {
  /** Number of the newest event, visible or not. */
  seq: number;
  /** Output bytes so far, including those lost to gaps. */
  offset: number;
  visibleSeq: number;
  visibleOffset: number;
  lastOutputUs: number | undefined;
  private readonly file: JournalFile;
  private readonly writeQueue: WriteQueue;
  private readonly usage: DiskUsage;
  private readonly clock: Clock;
  private originUs: number;
  private readonly maxEventBytes: number;
  private readonly growthListeners = new Set<() => void>();
  /** Waiters for an event to become visible. */
  private readonly viewers = new Set<Viewer>();
  removed = false;
  private ended = false;

  constructor(options: JournalOptions) {
    const { place, limits, clock, pool, after } = options;
    this.usage = place.usage;
    this.clock = clock;
    this.originUs = clock.nowUs();
    this.file = new JournalFile(place, limits, () => clock.wallMs());
    if (after) this.file.adopt(after.segments);
    this.seq = this.visibleSeq = after?.seq ?? 0;
    this.offset = this.visibleOffset = after?.offset ?? 0;
    this.writeQueue = new WriteQueue({
      file: this.file,
      pool,
      clock,
      memoryBytes: limits.memoryBytes,
      usage: place.usage,
      visible: (seq, offset) => this.grew(seq, offset),
    });
    this.writeQueue.lostBytes = after?.lostBytes ?? 0;
    this.maxEventBytes = Math.min(MAX_OUTPUT_EVENT_BYTES, Math.floor(this.file.segmentBytes / 2));
  }

  /** Creates the first file. */
  open(): void {
    this.file.openSegment(this.seq + 1, this.offset);
  }

  /** The same in the thread pool. */
  openAsync(): Promise<void> {
    return this.file.openSegmentAsync(this.seq + 1, this.offset);
  }

  /** The same with the file of a removed journal; false if that is not possible. */
  openWith(old: Segment): boolean {
    return this.file.reuse(old);
  }

  /** A process begins to use the journal: its time counts from here. If the disk has refused writes, tests it now. */
  begin(): void {
    this.originUs = this.clock.nowUs();
    if (this.usage.refusals.count > 0) this.file.probe();
  }

  /** Called whenever more events are visible. Returns a function that unsubscribes. */
  onGrowth(listener: () => void): () => void {
    this.growthListeners.add(listener);
    return () => this.growthListeners.delete(listener);
  }

  append(event: Exclude<EventBody, { kind: 'output' | 'closed' }>): number {
    return this.add(event.kind, encodeBody(event).payload, NOTHING);
  }

  /** Appends the last event. It carries everything that a list shows of the process. */
  appendClosed({ facts, ending }: ClosedSummary): number {
    const { offset: bytes, lostBytes } = this;
    const segments = this.file.ranges();
    const payload = Buffer.from(JSON.stringify({ facts, ending, bytes, lostBytes, segments }));
    const footer = Buffer.alloc(FOOTER_BYTES);
    footer.writeUInt32LE(HEADER_BYTES + payload.length);
    FOOTER_MAGIC.copy(footer, 4);
    const seq = this.add('closed', payload, footer);
    this.ended = true;
    return seq;
  }

  output(stream: Stream, bytes: Buffer): void {
    if (this.ended) throw new Error('output after the journal was closed');
    const number = streams.indexOf(stream) + 1;
    this.lastOutputUs = this.clock.nowUs();
    if (bytes.length >= WRITE_THROUGH_BYTES && this.writeThrough(number, bytes)) return;
    for (let rest = bytes; rest.length > 0;) {
      let batch = this.writeQueue.last();
      let taken = batch?.extend(number, rest, this.maxEventBytes) ?? 0;
      let added = taken;
      if (taken === 0) {
        const stamp = this.stamp();
        // Rather waste the end of a batch than begin an event of a few bytes.
        if (!batch?.fits(Math.min(rest.length, this.maxEventBytes, 4096))) {
          batch = this.writeQueue.open(stamp.seq, stamp.offset, HEADER_BYTES + 1);
        }
        batch.openOutput(stamp, eventKinds.output, number);
        this.seq = stamp.seq;
        taken = batch.extend(number, rest, this.maxEventBytes);
        added = taken + HEADER_BYTES;
      }
      this.offset += taken;
      rest = rest.subarray(taken);
      this.writeQueue.added(added);
    }
  }

  /** Writes large output straight from the read buffer, without a copy. False if it must be queued. */
  private writeThrough(stream: number, bytes: Buffer): boolean {
    if (!this.writeQueue.canWriteThrough(bytes.length)) return false;
    const { seq, offset: firstOffset, maxEventBytes } = this;
    const { atUs, wallMs } = this.stamp();
    const pieces: Buffer[] = [];
    let endSeq = seq;
    for (let at = 0; at < bytes.length; at += maxEventBytes) {
      const payload = bytes.subarray(at, at + maxEventBytes);
      endSeq += 1;
      const [kind, offset] = [eventKinds.output, firstOffset + at];
      pieces.push(headOf({ kind, stream, seq: endSeq, offset, atUs, wallMs }, payload), payload);
    }
    const endOffset = firstOffset + bytes.length;
    const part = {
      firstSeq: seq + 1,
      firstOffset,
      endSeq,
      endOffset,
      bytes: bytes.length + (endSeq - seq) * HEADER_BYTES,
      pieces: () => pieces,
    };
    if (!this.writeQueue.writeThrough(part)) return false;
    [this.seq, this.offset] = [endSeq, endOffset];
    this.grew(endSeq, endOffset);
    return true;
  }

  /** The write queue is full: pause the child until `whenDrained`. */
  get full(): boolean {
    return this.writeQueue.full;
  }

  whenDrained(callback: () => void): void {
    this.writeQueue.whenDrained(callback);
  }

  /** The reason why output cannot be stored now. */
  get degraded(): string | undefined {
    return this.writeQueue.degraded;
  }

  /** See `WriteQueue.onStorage`. */
  onStorage(listener: (problem: string | undefined) => void): void {
    this.writeQueue.onStorage = listener;
  }

  /** Output bytes that were never stored. */
  get lostBytes(): number {
    return this.writeQueue.lostBytes;
  }

  flush(): void {
    this.writeQueue.flush();
  }

  /** Resolves when everything appended so far is visible; rejects with `not_found` if the journal is removed. */
  visible(): Promise<void> {
    const target = this.seq;
    this.flush();
    if (this.visibleSeq >= target) return Promise.resolve();
    if (this.removed) return Promise.reject(removedError());
    return new Promise((resolve, reject) => this.viewers.add({ target, resolve, reject }));
  }

  /** Retries a refusing disk now instead of later. */
  retry(): Promise<void> {
    return this.writeQueue.retry();
  }

  /** See `WriteQueue.storeExit`. */
  storeExit(): Promise<boolean> {
    return this.writeQueue.storeExit();
  }

  /** Everything that can be read, oldest first. */
  sources(): Source[] {
    return [...this.file.segments, ...this.writeQueue.sources()];
  }

  get bytesOnDisk(): number {
    return this.file.bytesOnDisk;
  }

  segments(): readonly Segment[] {
    return this.file.segments;
  }

  sync(): Promise<void> {
    return this.file.sync();
  }

  /** The journal has ended and is written: this object is no longer needed. */
  get settledOnDisk(): boolean {
    return this.ended && this.writeQueue.empty;
  }

  /** Drops one more segment after the head (default: the journal's limit); returns the bytes freed. */
  shrink(headBytes?: number): number {
    return this.file.shrink(headBytes);
  }

  /** Closes the file; a later append opens another. */
  release(): void {
    this.file.closeSegment();
  }

  /** Returns the files that could not be removed. */
  remove(): RefusedRemoval[] {
    this.removed = true;
    this.writeQueue.discard();
    for (const { reject } of this.viewers) reject(removedError());
    this.viewers.clear();
    return this.file.remove();
  }

  private stamp(): EventStamp {
    const { seq, offset, clock, originUs } = this;
    return { seq: seq + 1, offset, atUs: clock.nowUs() - originUs, wallMs: clock.wallMs() };
  }

  private add(
    kind: Exclude<keyof typeof eventKinds, 'output'>,
    payload: Buffer,
    footer: Buffer,
  ): number {
    if (this.ended) throw new Error(`a ${kind} event after the journal was closed`);
    // Readers treat a larger record as damage.
    if (payload.length > MAX_RECORD_BYTES) {
      const problem = `A "${kind}" event of ${payload.length} bytes is above the limit of ${MAX_RECORD_BYTES}.`;
      throw new HoldfastError('too_large', problem, { bytes: payload.length });
    }
    const { seq, offset, atUs, wallMs } = this.stamp();
    let batch = this.writeQueue.last();
    if (!batch?.fits(payload.length + footer.length)) {
      const bytes = HEADER_BYTES + payload.length + footer.length;
      batch = this.writeQueue.open(seq, offset, bytes);
    }
    batch.add({ kind: eventKinds[kind], stream: 0, seq, offset, atUs, wallMs }, payload);
    if (footer.length > 0) batch.addFooter(footer);
    this.seq = seq;
    this.writeQueue.added(HEADER_BYTES + payload.length + footer.length);
    return seq;
  }

  private grew(seq: number, offset: number): void {
    if (seq <= this.visibleSeq) return;
    this.visibleSeq = seq;
    this.visibleOffset = offset;
    for (const listener of this.growthListeners) listener();
    for (const viewer of this.viewers) {
      if (seq < viewer.target) continue;
      this.viewers.delete(viewer);
      viewer.resolve();
    }
  }
}
