// process/read: what a process has printed after a number, and how it is now. Without a limit everything is in one answer,
// dense, because a client that recovers takes a missing number for a lost process.

import { constants } from 'node:os';
import type { Clock } from '../../../base/clock.ts';
import type { HostApi, Owner, Page } from '../../../protocol/host-api.ts';
import { MAX_PAGE_BYTES } from '../../../protocol/limits.ts';
import type { Outcome } from '../../../protocol/process.ts';
import { counted, exitCodeOf, missingText, type Counted, type Missing } from './numbering.ts';

export interface ReadAsked {
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
  /** An addition: numbers whose output is not here. `retained`: it can still be read, with `maxBytes`. */
  readonly omitted?: readonly Omitted[];
}

type Omitted = Omit<Missing, 'kind'> & { readonly retained: boolean };

/** In base64 still below the 64 MiB that a client takes as one message. */
const MOST_BYTES = 44 * 1024 * 1024;
/** Of these, from the beginning. */
const HEAD_BYTES = 8 * 1024 * 1024;
/** Each is four JSON values, of which a client takes 262 144. */
const MOST_CHUNKS = 50_000;

export interface ReadTools {
  readonly host: HostApi;
  readonly owner: Owner;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function readProcess(asked: ReadAsked, tools: ReadTools): Promise<ReadAnswer> {
  const { host, owner, clock, signal } = tools;
  const deadlineUs = clock.nowUs() + asked.waitMs * 1000;
  const { id, afterSeq } = asked;
  const gathered = new Gathered(asked);
  let page = await host.read(
    owner,
    { id, afterCount: afterSeq, maxBytes: pageBytes(asked), uncounted: true },
    signal,
  );
  let offset: number | undefined;
  for (;;) {
    const more = gathered.add(page, offset);
    const after = page.nextAfter;
    offset = page.nextOffset;
    const caughtUp = after >= page.seq;
    if (!more || (caughtUp && gathered.ready(page))) return gathered.answer(page);
    const leftMs = caughtUp ? (deadlineUs - clock.nowUs()) / 1000 : 0;
    if (caughtUp && leftMs <= 0) return gathered.answer(page);
    page = await host.read(
      owner,
      {
        id,
        after,
        offset,
        maxBytes: pageBytes(asked),
        uncounted: true,
        ...(caughtUp && { waitMs: Math.ceil(leftMs) }),
      },
      signal,
    );
  }
}

function pageBytes({ maxBytes }: ReadAsked): number {
  return Math.min(MAX_PAGE_BYTES, Math.max(64 * 1024, maxBytes ?? MAX_PAGE_BYTES));
}

interface Held {
  readonly seq: number;
  readonly stream: string;
  readonly data: Buffer;
}

/** The chunks of one answer while they are read. */
class Gathered {
  private readonly asked: ReadAsked;
  private readonly head: Held[] = [];
  private readonly tail: Held[] = [];
  private missing: Omitted[] = [];
  private bytes = 0;
  private headBytes = 0;
  private tailFrom = 0;
  private exited: Outcome | undefined;
  private closed = false;

  constructor(asked: ReadAsked) {
    this.asked = asked;
  }

  /** False: nothing more belongs into this answer. */
  add(page: Page, offset: number | undefined): boolean {
    for (const event of counted(page, offset)) {
      if (!this.take(event)) return false;
    }
    return true;
  }

  /** There is something to answer with. */
  ready({ state, uncounted }: Page): boolean {
    if (this.head.length > 0 || this.missing.length > 0 || state === 'closed' || state === 'lost')
      return true;
    const ended = state === 'exited' || this.exited !== undefined;
    return this.closed || (ended && this.asked.afterSeq < (uncounted?.count ?? 0));
  }

  answer({ state, outcome, uncounted }: Page): ReadAnswer {
    const ended = outcome ?? this.exited;
    const dense = this.asked.maxBytes === undefined;
    const chunks = this.chunks(dense);
    const last = chunks.at(-1);
    return {
      chunks,
      nextSeq: !dense && last ? last.seq + 1 : (uncounted?.count ?? 0) + 1,
      exited: ended !== undefined,
      exitCode: ended === undefined ? null : exitCodeOf(ended, constants.signals),
      closed: this.closed || state === 'closed' || state === 'lost',
      failure: ended?.kind === 'lost' ? ended.reason : null,
      sandboxDenied: false,
      ...(this.missing.length > 0 && { omitted: this.missing }),
    };
  }

  private take(event: Counted): boolean {
    const { afterSeq, maxBytes } = this.asked;
    if (event.kind === 'exited') this.exited = event.outcome;
    else if (event.kind === 'closed') this.closed = true;
    else if (event.kind === 'missing') {
      const { fromSeq, toSeq, bytes } = event;
      this.missing.push({ fromSeq, toSeq, bytes, retained: false });
    } else if (event.seq > afterSeq) {
      const fits = maxBytes === undefined || this.bytes + event.data.length <= maxBytes;
      if (!fits && this.head.length > 0) return false;
      // With a limit the client comes again for the rest; without one the middle is taken out at the end.
      if (maxBytes !== undefined && this.head.length >= MOST_CHUNKS) return false;
      this.hold(event);
    }
    return true;
  }

  private hold({ seq, stream, data }: Held): void {
    this.bytes += data.length;
    const held = { seq, stream, data };
    if (this.asked.maxBytes !== undefined || this.headBytes + data.length <= HEAD_BYTES) {
      this.headBytes += data.length;
      this.head.push(held);
      return;
    }
    this.tail.push(held);
    while (this.bytes > MOST_BYTES) this.omitOldest();
  }

  /** From behind the head, so that the beginning and the end stay. */
  private omitOldest(): void {
    const oldest = this.tail[this.tailFrom];
    if (!oldest) throw new Error('the head of an answer is larger than the answer may be');
    // The numbers stay, the bytes go.
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
    const there = [...this.head, ...this.tail].map(({ seq, stream, data }) => ({
      seq,
      stream,
      chunk: data.toString('base64'),
    }));
    const all = dense && this.missing.length > 0 ? this.filled(there) : there;
    if (all.length <= MOST_CHUNKS) return all;
    return this.withoutMiddle(all);
  }

  /**
   * More chunks than a client takes in one message. The numbers in the middle are left out and named in `omitted`, where
   * what was left out before is joined to them.
   */
  private withoutMiddle(all: readonly Chunk[]): Chunk[] {
    const head = all.slice(0, MOST_CHUNKS / 2);
    const tail = all.slice(-MOST_CHUNKS / 2);
    const fromSeq = (head.at(-1)?.seq ?? 0) + 1;
    const toSeq = (tail[0]?.seq ?? 1) - 1;
    const there = [...this.head, ...this.tail];
    const inside = there.filter(({ seq }) => seq >= fromSeq && seq <= toSeq);
    let bytes = inside.reduce((sum, { data }) => sum + data.length, 0);
    const others: Omitted[] = [];
    for (const each of this.missing) {
      // A stretch that reaches into the middle keeps its own entry: its bytes cannot be divided.
      if (each.fromSeq >= fromSeq && each.toSeq <= toSeq) bytes += each.bytes;
      else others.push(each);
    }
    this.missing = [...others, { fromSeq, toSeq, bytes, retained: true }].toSorted(
      (a, b) => a.fromSeq - b.fromSeq,
    );
    return [...head, ...tail];
  }

  /** With something for every number that is missing, the first of a stretch saying so. */
  private filled(there: readonly Chunk[]): Chunk[] {
    const chunks = new Map(there.map((chunk) => [chunk.seq, chunk]));
    for (const { fromSeq, toSeq, bytes } of this.missing) {
      const text = Buffer.from(missingText({ bytes })).toString('base64');
      for (let seq = fromSeq; seq <= Math.min(toSeq, fromSeq + MOST_CHUNKS); seq += 1) {
        const stream = chunks.get(seq)?.stream ?? 'stdout';
        chunks.set(seq, { seq, stream, chunk: seq === fromSeq ? text : '' });
      }
    }
    return [...chunks.values()].sort((a, b) => a.seq - b.seq);
  }
}
