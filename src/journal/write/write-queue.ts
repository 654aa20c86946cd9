// The write queue of a journal. Batches are written in order: in the same turn, or in the thread pool while the disk is
// slow. While the disk refuses, they stay in memory and readable, up to a limit. Beyond it the oldest are dropped and
// become one gap with exact counts, which is written first when the disk works again.

import type { BufferPool } from '../../base/bytes/buffer-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { errnoOf } from '../../base/disk.ts';
import { eventKinds, type GapBody } from '../../protocol/event.ts';
import { checkRecord, HEADER_BYTES, payloadOf, readHeader } from '../../protocol/record.ts';
import { Batch } from './batch.ts';
import type { DiskUsage } from './disk-usage.ts';
import type { JournalFile } from './journal-file.ts';
import type { Part } from './part.ts';
import type { Source } from '../read/segment.ts';

interface WriteQueueOptions {
  readonly file: JournalFile;
  readonly pool: BufferPool;
  readonly clock: Clock;
  readonly memoryBytes: number;
  readonly usage: DiskUsage;
  /** Called when everything up to this event can be read. */
  readonly visible: (seq: number, offset: number) => void;
}

/** How often a refusing disk is retried. */
const RETRY_MS = 250;

export class WriteQueue {
  /** The reason why batches cannot be stored now. */
  degraded: string | undefined;
  /** Output bytes that were dropped and will never be stored. */
  lostBytes = 0;
  /** Called with the reason when the disk begins to refuse, and with undefined when it works again. */
  onStorage: ((problem: string | undefined) => void) | undefined;
  private readonly options: WriteQueueOptions;
  private queue: Batch[] = [];
  private inFlight: Batch[] = [];
  private bytes = 0;
  private dropped: { fromSeq: number; toSeq: number; offset: number; bytes: number } | undefined;
  private cancelRetry: (() => void) | undefined;
  private pumping: Promise<void> | undefined;
  private scheduled = false;
  private discarded = false;
  private drained: (() => void)[] = [];

  constructor(options: WriteQueueOptions) {
    this.options = options;
  }

  get empty(): boolean {
    return this.queue.length + this.inFlight.length === 0;
  }

  /** The queue is over its limit: the producer should pause until `whenDrained`. */
  get full(): boolean {
    return this.degraded === undefined && this.bytes >= this.options.memoryBytes;
  }

  whenDrained(callback: () => void): void {
    this.drained.push(callback);
  }

  /** The batch that may still be added to. */
  last(): Batch | undefined {
    return this.queue.at(-1);
  }

  open(firstSeq: number, firstOffset: number, bytes: number): Batch {
    const { pool, file } = this.options;
    const buffer = bytes <= pool.size ? pool.take() : Buffer.allocUnsafe(bytes);
    const capacity = Math.max(bytes, Math.min(buffer.length, file.segmentBytes));
    const batch = new Batch(buffer, { firstSeq, firstOffset, capacity });
    this.queue.push(batch);
    return batch;
  }

  /** Call it after every addition, with its size. */
  added(bytes: number): void {
    this.bytes += bytes;
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.scheduled && this.flush());
  }

  flush(): void {
    this.scheduled = false;
    if (this.discarded) this.queue = [];
    if (this.inFlight.length > 0 || this.queue.length === 0) return;
    if (this.degraded !== undefined) {
      this.holdInMemory();
      return;
    }
    // In this thread: on a busy machine a pool thread waits for its turn ten times as long as the write takes.
    const { file, usage } = this.options;
    if (usage.slow || file.mustWaitForNext(this.bytes)) this.pumping = this.pump();
    else this.writeNow();
  }

  /** Whether this much can be written now: the queue is empty and the disk is neither refusing nor slow. */
  canWriteThrough(bytes: number): boolean {
    const { file, usage } = this.options;
    this.flush();
    return this.empty && this.degraded === undefined && !usage.slow && !file.mustWaitForNext(bytes);
  }

  /** Writes records without a copy. False if the disk refuses: the caller then queues them. */
  writeThrough(records: Part): boolean {
    try {
      this.timed([records]);
      return true;
    } catch {
      // The next flush of the queue meets and handles the same error.
      return false;
    }
  }

  /** Batches that are readable from memory: none unless the disk refuses. */
  sources(): Source[] {
    if (this.degraded === undefined) return [];
    return [...this.inFlight, ...this.queue].map(memorySource);
  }

  /** The journal is being removed: drops everything, also what is added later. */
  discard(): void {
    this.discarded = true;
    this.recovered();
    this.cancelRetry?.();
    this.queue = [];
  }

  private writeNow(): void {
    const group = this.queue;
    try {
      this.timed(group as [Batch, ...Batch[]]);
    } catch (error) {
      this.degrade(error);
      return;
    }
    this.queue = [];
    this.written(group);
  }

  private timed(parts: readonly [Part, ...Part[]]): void {
    const { file, clock, usage } = this.options;
    const beganUs = clock.nowUs();
    file.appendSync(parts);
    usage.wrote(clock.nowUs() - beganUs);
  }

  private async pump(): Promise<void> {
    const { file, clock, usage } = this.options;
    try {
      while (this.queue.length > 0) {
        const group = this.queue.splice(0, this.groupLength());
        this.inFlight = group;
        const beganUs = clock.nowUs();
        await file.append(group as [Batch, ...Batch[]]);
        usage.wrote(clock.nowUs() - beganUs);
        this.inFlight = [];
        this.written(group);
      }
      this.recovered();
    } catch (error) {
      this.queue.unshift(...this.inFlight);
      this.inFlight = [];
      this.degrade(error);
    }
  }

  /** Batches for one write: at most half a segment and half of the memory limit, so that others can fill meanwhile. */
  private groupLength(): number {
    const { file, memoryBytes } = this.options;
    const most = Math.min(file.segmentBytes, memoryBytes) / 2;
    let bytes = 0;
    for (const [index, batch] of this.queue.entries()) {
      bytes += batch.bytes;
      if (index > 0 && bytes > most) return index;
    }
    return this.queue.length;
  }

  private written(batches: readonly Batch[]): void {
    for (const batch of batches) {
      this.bytes -= batch.bytes;
      // While degraded a reader may still use the batch.
      if (this.degraded === undefined) this.options.pool.give(batch.buffer);
    }
    const last = batches.at(-1);
    if (last) this.options.visible(last.endSeq, last.endOffset);
    if (this.drained.length > 0 && this.bytes <= this.options.memoryBytes / 2) this.release();
  }

  private release(): void {
    for (const callback of this.drained.splice(0)) callback();
  }

  private recovered(): void {
    if (this.degraded === undefined) return;
    this.options.usage.refusals.count -= 1;
    this.degraded = undefined;
    if (!this.discarded) this.onStorage?.(undefined);
  }

  private degrade(error: unknown): void {
    const before = this.degraded;
    const errno = errnoOf(error);
    this.degraded = errno ?? (error instanceof Error ? error.message : String(error));
    if (before === undefined) {
      this.options.usage.refusals.count += 1;
      this.onStorage?.(this.degraded);
    }
    this.holdInMemory();
    this.release();
    this.cancelRetry?.();
    this.cancelRetry = this.options.clock.after(RETRY_MS, () => void this.retry());
  }

  /** Resolves when the disk has taken everything, or has refused again. */
  async retry(): Promise<void> {
    // A pending write holds the first batches.
    await this.pumping;
    if (this.degraded === undefined) return;
    this.cancelRetry?.();
    this.cancelRetry = undefined;
    if (this.dropped) {
      this.queue.unshift(this.gapBatch(this.dropped));
      this.dropped = undefined;
    }
    this.pumping = this.pump();
    await this.pumping;
  }

  /**
   * For a host that closes while the disk refuses: stores only the exit, after a gap that counts the rest. The next host
   * adds what follows the exit. True if nothing is left to store.
   */
  async storeExit(): Promise<boolean> {
    await this.pumping;
    if (this.degraded === undefined) return true;
    const exit = findRecord(this.queue, eventKinds.exited);
    if (!exit) return true;
    const { firstSeq: fromSeq, firstOffset: offset } = this.queue[0] ?? exit;
    const first = this.dropped ?? { fromSeq, offset };
    const bytes = exit.firstOffset - first.offset;
    const gap = { fromSeq: first.fromSeq, toSeq: exit.firstSeq - 1, offset: first.offset, bytes };
    this.queue = gap.toSeq < gap.fromSeq ? [exit] : [this.gapBatch(gap), exit];
    this.dropped = undefined;
    await this.retry();
    return this.degraded === undefined;
  }

  private holdInMemory(): void {
    // Seal it first: a visible event must not grow.
    this.queue.at(-1)?.seal();
    while (this.bytes > this.options.memoryBytes && this.queue.length > 1) {
      const batch = this.queue.shift();
      if (batch) this.drop(batch);
    }
    const last = this.queue.at(-1);
    if (last) this.options.visible(last.endSeq, last.endOffset);
  }

  private drop(batch: Batch): void {
    const bytes = batch.endOffset - batch.firstOffset;
    this.bytes -= batch.bytes;
    if (!batch.gap) this.lostBytes += bytes;
    this.dropped ??= {
      fromSeq: batch.firstSeq,
      toSeq: batch.endSeq,
      offset: batch.firstOffset,
      bytes: 0,
    };
    this.dropped.toSeq = batch.endSeq;
    this.dropped.bytes += bytes;
  }

  private gapBatch(dropped: NonNullable<typeof this.dropped>): Batch {
    const body: GapBody = {
      fromSeq: dropped.fromSeq,
      bytes: dropped.bytes,
      reason: `the disk did not take it: ${this.degraded ?? 'unknown'}`,
    };
    const payload = Buffer.from(JSON.stringify(body));
    const { fromSeq: firstSeq, offset: firstOffset } = dropped;
    const batch = new Batch(Buffer.alloc(HEADER_BYTES + payload.length), {
      firstSeq,
      firstOffset,
      gap: true,
    });
    const wallMs = this.options.clock.wallMs();
    const header = {
      kind: eventKinds.gap,
      stream: 0,
      seq: dropped.toSeq,
      offset: firstOffset,
      atUs: 0,
      wallMs,
    };
    batch.add(header, payload, dropped.bytes);
    this.bytes += batch.bytes;
    return batch;
  }
}

/** A batch with only the first record of this kind. */
function findRecord(batches: readonly Batch[], kind: number): Batch | undefined {
  for (const batch of batches) {
    const bytes = batch.view();
    for (let at = 0; ;) {
      const check = checkRecord(bytes, at);
      if (check.kind !== 'good') break;
      const header = readHeader(bytes, at);
      if (header.kind === kind) {
        const { seq: firstSeq, offset: firstOffset } = header;
        const alone = new Batch(Buffer.alloc(check.bytes), { firstSeq, firstOffset });
        alone.add(header, payloadOf(bytes, at, check.bytes));
        return alone;
      }
      at += check.bytes;
    }
  }
  return undefined;
}

function memorySource(batch: Batch): Source {
  const bytes = batch.view();
  return {
    firstSeq: batch.firstSeq,
    firstOffset: batch.firstOffset,
    endSeq: batch.endSeq,
    endOffset: batch.endOffset,
    size: bytes.length,
    index: [],
    place: 'memory',
    read: (position, maxBytes) => Promise.resolve(bytes.subarray(position, position + maxBytes)),
  };
}
