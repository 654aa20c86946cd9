// process/read: the output after a sequence number, and the state of the process. Without a limit the answer has every
// number, because a client that recovers takes a missing number for a lost process.

import { constants } from 'node:os';
import type { Clock } from '../../../base/clock.ts';
import type { HostApi, Owner, Page } from '../../../protocol/host-api.ts';
import { MAX_PAGE_BYTES } from '../../../protocol/limits.ts';
import type { Outcome } from '../../../protocol/process.ts';
import {
  numberEvents,
  codexExitCode,
  missingText,
  type NumberedEvent,
  type Missing,
} from './numbering.ts';

export interface ReadRequest {
  readonly id: string;
  readonly afterSeq: number;
  readonly maxBytes: number | undefined;
  readonly waitMs: number;
}

interface Chunk {
  readonly seq: number;
  readonly stream: string;
  readonly chunk: string;
}

export interface ReadAnswer {
  readonly chunks: readonly Chunk[];
  readonly nextSeq: number;
  readonly exited: boolean;
  readonly exitCode: number | null;
  readonly closed: boolean;
  readonly failure: string | null;
  readonly sandboxDenied: boolean;
  /** An extension: numbers whose output is missing here. `retained`: it can still be read, with `maxBytes`. */
  readonly omitted?: readonly Omitted[];
}

type Omitted = Omit<Missing, 'kind'> & { readonly retained: boolean };

/** As base64 still below the 64 MiB that a client accepts as one message. */
const MAX_BYTES = 44 * 1024 * 1024;
/** How much of that is from the beginning. */
const HEAD_BYTES = 8 * 1024 * 1024;
/** Each chunk is four JSON values, of which a client accepts 262,144. */
const MAX_CHUNKS = 50_000;

export interface ReadTools {
  readonly host: HostApi;
  readonly owner: Owner;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function readProcess(request: ReadRequest, tools: ReadTools): Promise<ReadAnswer> {
  const { host, owner, clock, signal } = tools;
  const deadlineUs = clock.nowUs() + request.waitMs * 1000;
  const { id, afterSeq } = request;
  const collector = new ChunkCollector(request);
  let page = await host.read(
    owner,
    { id, afterCount: afterSeq, maxBytes: pageBytes(request), uncounted: true },
    signal,
  );
  let offset: number | undefined;
  for (;;) {
    const more = collector.add(page, offset);
    const after = page.nextAfter;
    offset = page.nextOffset;
    const caughtUp = after >= page.seq;
    if (!more || (caughtUp && collector.ready(page))) return collector.answer(page);
    const leftMs = caughtUp ? (deadlineUs - clock.nowUs()) / 1000 : 0;
    if (caughtUp && leftMs <= 0) return collector.answer(page);
    page = await host.read(
      owner,
      {
        id,
        after,
        offset,
        maxBytes: pageBytes(request),
        uncounted: true,
        ...(caughtUp && { waitMs: Math.ceil(leftMs) }),
      },
      signal,
    );
  }
}

function pageBytes({ maxBytes }: ReadRequest): number {
  return Math.min(MAX_PAGE_BYTES, Math.max(64 * 1024, maxBytes ?? MAX_PAGE_BYTES));
}

interface HeldChunk {
  readonly seq: number;
  readonly stream: string;
  readonly data: Buffer;
}

/** Collects the chunks of one answer. */
class ChunkCollector {
  private readonly request: ReadRequest;
  private readonly head: HeldChunk[] = [];
  private readonly tail: HeldChunk[] = [];
  private missing: Omitted[] = [];
  private bytes = 0;
  private headBytes = 0;
  private tailFrom = 0;
  private exited: Outcome | undefined;
  private closed = false;

  constructor(request: ReadRequest) {
    this.request = request;
  }

  /** False: the answer is complete. */
  add(page: Page, offset: number | undefined): boolean {
    for (const event of numberEvents(page, offset)) {
      if (!this.take(event)) return false;
    }
    return true;
  }

  /** Whether there is something to answer. */
  ready({ state, uncounted }: Page): boolean {
    if (this.head.length > 0 || this.missing.length > 0 || state === 'closed' || state === 'lost')
      return true;
    const ended = state === 'exited' || this.exited !== undefined;
    return this.closed || (ended && this.request.afterSeq < (uncounted?.count ?? 0));
  }

  answer({ state, outcome, uncounted }: Page): ReadAnswer {
    const ended = outcome ?? this.exited;
    const dense = this.request.maxBytes === undefined;
    const chunks = this.chunks(dense);
    const last = chunks.at(-1);
    return {
      chunks,
      nextSeq: !dense && last ? last.seq + 1 : (uncounted?.count ?? 0) + 1,
      exited: ended !== undefined,
      exitCode: ended === undefined ? null : codexExitCode(ended, constants.signals),
      closed: this.closed || state === 'closed' || state === 'lost',
      failure: ended?.kind === 'lost' ? ended.reason : null,
      sandboxDenied: false,
      ...(this.missing.length > 0 && { omitted: this.missing }),
    };
  }

  private take(event: NumberedEvent): boolean {
    const { afterSeq, maxBytes } = this.request;
    if (event.kind === 'exited') this.exited = event.outcome;
    else if (event.kind === 'closed') this.closed = true;
    else if (event.kind === 'missing') {
      const { fromSeq, toSeq, bytes } = event;
      this.missing.push({ fromSeq, toSeq, bytes, retained: false });
    } else if (event.seq > afterSeq) {
      const fits = maxBytes === undefined || this.bytes + event.data.length <= maxBytes;
      if (!fits && this.head.length > 0) return false;
      // With a limit the client reads the rest later; without one the middle is removed at the end.
      if (maxBytes !== undefined && this.head.length >= MAX_CHUNKS) return false;
      this.hold(event);
    }
    return true;
  }

  private hold({ seq, stream, data }: HeldChunk): void {
    this.bytes += data.length;
    const held = { seq, stream, data };
    if (this.request.maxBytes !== undefined || this.headBytes + data.length <= HEAD_BYTES) {
      this.headBytes += data.length;
      this.head.push(held);
      return;
    }
    this.tail.push(held);
    while (this.bytes > MAX_BYTES) this.omitOldest();
  }

  /** Removes output behind the head, so that the beginning and the end stay. */
  private omitOldest(): void {
    const oldest = this.tail[this.tailFrom];
    if (!oldest) throw new Error('the head of an answer is larger than the answer may be');
    // Keeps the number, drops the bytes.
    this.tail[this.tailFrom] = { ...oldest, data: Buffer.alloc(0) };
    this.tailFrom += 1;
    this.bytes -= oldest.data.length;
    const last = this.missing.at(-1);
    if (last?.retained && last.toSeq === oldest.seq - 1)
      this.missing[this.missing.length - 1] = {
        ...last,
        toSeq: oldest.seq,
        bytes: last.bytes + oldest.data.length,
      };
    else
      this.missing.push({
        fromSeq: oldest.seq,
        toSeq: oldest.seq,
        bytes: oldest.data.length,
        retained: true,
      });
  }

  private chunks(dense: boolean): Chunk[] {
    const present = [...this.head, ...this.tail].map(({ seq, stream, data }) => ({
      seq,
      stream,
      chunk: data.toString('base64'),
    }));
    const all = dense && this.missing.length > 0 ? this.fillMissing(present) : present;
    if (all.length <= MAX_CHUNKS) return all;
    return this.dropMiddle(all);
  }

  /**
   * There are more chunks than a client accepts in one message. The middle is removed and reported in `omitted`, merged
   * with what was removed before.
   */
  private dropMiddle(all: readonly Chunk[]): Chunk[] {
    const head = all.slice(0, MAX_CHUNKS / 2);
    const tail = all.slice(-MAX_CHUNKS / 2);
    const fromSeq = (head.at(-1)?.seq ?? 0) + 1;
    const toSeq = (tail[0]?.seq ?? 1) - 1;
    const present = [...this.head, ...this.tail];
    const inside = present.filter(({ seq }) => seq >= fromSeq && seq <= toSeq);
    let bytes = inside.reduce((total, { data }) => total + data.length, 0);
    const others: Omitted[] = [];
    for (const each of this.missing) {
      // A stretch that only overlaps the middle keeps its own entry: its bytes cannot be divided.
      if (each.fromSeq >= fromSeq && each.toSeq <= toSeq) bytes += each.bytes;
      else others.push(each);
    }
    this.missing = [...others, { fromSeq, toSeq, bytes, retained: true }].toSorted(
      (a, b) => a.fromSeq - b.fromSeq,
    );
    return [...head, ...tail];
  }

  /** Adds a chunk for every missing number; the first of each stretch has a text. */
  private fillMissing(present: readonly Chunk[]): Chunk[] {
    const chunks = new Map(present.map((chunk) => [chunk.seq, chunk]));
    for (const { fromSeq, toSeq, bytes } of this.missing) {
      const text = Buffer.from(missingText({ bytes })).toString('base64');
      for (let seq = fromSeq; seq <= Math.min(toSeq, fromSeq + MAX_CHUNKS); seq += 1) {
        const stream = chunks.get(seq)?.stream ?? 'stdout';
        chunks.set(seq, { seq, stream, chunk: seq === fromSeq ? text : '' });
      }
    }
    return [...chunks.values()].sort((a, b) => a.seq - b.seq);
  }
}
