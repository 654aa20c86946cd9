// A search: one query over the stored output of a process, block by block, with the context lines of each hit and the
// position where the next search continues. The caller provides the function that matches a block.

import { setImmediate as turn } from 'node:timers/promises';
import type { CancelSignal } from '../../base/cancel-signal.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { SearchHit, SearchResult } from '../../protocol/views.ts';
import type { ByteSource } from './byte-source.ts';
import { BLOCK_BYTES, LineBlocks } from './line-blocks.ts';
import type { LineBlock } from './line-blocks.ts';
import { LineNumbers } from './line-numbers.ts';
import { contextLine } from './line-scan.ts';
import type { LineHit, ScanInput } from './line-scan.ts';
import type { SearchPlan } from './search-query.ts';

export type Scan = (input: ScanInput) => Promise<readonly LineHit[]>;

interface Draft extends SearchHit {
  endOffset: number;
  readonly before: string[];
  readonly after: string[];
}

/** 1000 hits with 40 lines around each could be 80 MB. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024;
const LF = 0x0a;

export class Search {
  private readonly plan: SearchPlan;
  private readonly scan: Scan;
  private readonly to: number;
  private readonly blocks: LineBlocks;
  private numbers: LineNumbers | undefined;
  private readonly hits: Draft[] = [];
  /** Hits that still need context lines after them. */
  private waiting: Draft[] = [];
  /** A hit in a long line whose end has not been read. */
  private endless: Draft | undefined;
  private recent: { readonly lineStart: number; readonly text: string }[] = [];
  /** Start of the last reported line. */
  private reported: number;
  private resultBytes = 0;
  private full = false;
  /** When the limit is reached: after the line of the last hit. */
  private stop: { readonly at: number; readonly missedBytes: number } | undefined;

  constructor(source: ByteSource, plan: SearchPlan, scan: Scan) {
    const from = plan.resume?.offset ?? plan.from ?? source.start;
    const lineStart = plan.resume?.lineStart ?? from;
    this.plan = plan;
    this.scan = scan;
    this.to = Math.max(from, Math.min(plan.to ?? source.end, source.end));
    this.blocks = new LineBlocks(source, { from, to: this.to, lineStart }, plan.piece);
    this.reported = plan.resume?.reported === true ? lineStart : -1;
    if (plan.lineNumbers && from === 0) this.numbers = new LineNumbers();
  }

  async run(signal?: CancelSignal): Promise<SearchResult> {
    const searchedFrom = this.blocks.lineStart;
    let sinceTurn = 0;
    for (;;) {
      if (signal?.aborted === true) throw abortedError();
      const block = await this.blocks.next();
      if (block === undefined) break;
      // The number of missing lines is unknown.
      if (this.blocks.missedBytes > 0) this.numbers = undefined;
      this.endLine(block);
      this.giveAfter(block);
      if (!this.full) await this.match(block);
      this.remember(block);
      this.numbers?.pass(block);
      if (this.stop !== undefined && this.waiting.length === 0) break;
      sinceTurn += block.bytes.length;
      if (sinceTurn < BLOCK_BYTES) continue;
      sinceTurn = 0;
      await turn();
    }
    return this.result(searchedFrom);
  }

  private async match(block: LineBlock): Promise<void> {
    const { piece, skipBytes, raw, limit } = this.plan;
    const size = block.bytes.length;
    const again = block.lineStart === this.reported;
    const inPieces = block.more || block.offset > block.lineStart;
    if (again && inPieces) return;
    const hits = await this.scan({
      bytes: block.bytes,
      skipBytes: block.offset > block.lineStart ? Math.min(skipBytes, size) : 0,
      settledBytes: block.more ? size - piece.overlap + skipBytes : size,
      unfinished: block.more || block.open,
      raw,
      limit: limit - this.hits.length + (again ? 1 : 0),
    });
    for (const hit of hits) {
      if (again && hit.start === 0) continue;
      this.add(block, hit);
      if (this.full) break;
    }
  }

  private add(block: LineBlock, hit: LineHit): void {
    const { context, limit } = this.plan;
    const offset = hit.start === 0 ? block.lineStart : block.offset + hit.start;
    const before = context > 0 ? this.before(block, hit.start, offset) : [];
    const after = block.more ? [] : this.linesFrom(block, hit.end + 1, context);
    const lineNumber = this.numbers?.at(block, hit.start);
    const draft = {
      offset,
      ...(lineNumber !== undefined && { lineNumber }),
      endOffset: block.offset + hit.end,
      line: hit.line,
      match: hit.match,
      before,
      after,
    };
    this.hits.push(draft);
    this.reported = offset;
    if (after.length < context) this.waiting.push(draft);
    if (block.more) this.endless = draft;
    for (const text of [hit.line, hit.match, ...before, ...after]) this.resultBytes += text.length;
    this.full = this.hits.length >= limit || this.resultBytes >= MAX_RESULT_BYTES;
    if (!this.full || block.more) return;
    const inside = hit.end < block.bytes.length;
    this.stop = {
      at: inside ? draft.endOffset + 1 : block.next,
      missedBytes: this.blocks.missedBytes,
    };
  }

  /** Sets the end of the line of a hit in a long line. */
  private endLine(block: LineBlock): void {
    if (this.endless === undefined || block.more) return;
    this.endless.endOffset = block.offset + block.bytes.length;
    this.endless = undefined;
    if (this.full) this.stop = { at: block.next, missedBytes: this.blocks.missedBytes };
  }

  private giveAfter(block: LineBlock): void {
    if (this.waiting.length === 0 || block.offset > block.lineStart) return;
    const lines = this.linesFrom(block, 0, this.plan.context);
    for (const { after } of this.waiting) {
      const given = lines.slice(0, this.plan.context - after.length);
      after.push(...given);
      for (const text of given) this.resultBytes += text.length;
    }
    this.waiting = this.waiting.filter(({ after }) => after.length < this.plan.context);
  }

  /** Keeps the last lines: one more than requested, because the first piece of a long line is its own neighbour. */
  private remember(block: LineBlock): void {
    const { context } = this.plan;
    if (context === 0 || block.offset > block.lineStart) return;
    const lines = this.linesBefore(block, block.bytes.length + 1, context + 1);
    this.recent = [...this.recent, ...lines].slice(-context - 1);
  }

  private before(block: LineBlock, start: number, offset: number): string[] {
    const { context } = this.plan;
    const near = block.offset > block.lineStart ? [] : this.linesBefore(block, start, context);
    const far = this.recent.filter(({ lineStart }) => lineStart < offset);
    return [...far, ...near].slice(-context).map(({ text }) => text);
  }

  private linesFrom(block: LineBlock, start: number, count: number): string[] {
    const lines: string[] = [];
    for (let at = start; lines.length < count && at <= block.bytes.length;) {
      const found = block.bytes.indexOf(LF, at);
      const end = found < 0 ? block.bytes.length : found;
      lines.push(contextLine(block.bytes.subarray(at, end), this.plan.raw, block.more));
      at = end + 1;
    }
    return lines;
  }

  /** The last lines that end before `start`, which is the start of a line or one after the end. */
  private linesBefore(
    block: LineBlock,
    start: number,
    count: number,
  ): { lineStart: number; text: string }[] {
    const lines: { lineStart: number; text: string }[] = [];
    for (let end = start - 1; lines.length < count && end >= 0;) {
      // A negative index would count from the end.
      const at = end === 0 ? 0 : block.bytes.lastIndexOf(LF, end - 1) + 1;
      const text = contextLine(block.bytes.subarray(at, end), this.plan.raw, block.more);
      lines.push({ lineStart: block.offset + at, text });
      end = at - 1;
    }
    return lines.toReversed();
  }

  private result(searchedFrom: number): SearchResult {
    const { offset, lineStart, missedBytes } = this.blocks;
    const stop = this.stop !== undefined && this.stop.at < this.to ? this.stop : undefined;
    const end = {
      offset,
      lineStart,
      reported: lineStart < this.to && lineStart === this.reported,
    };
    const resume =
      stop === undefined ? end : { offset: stop.at, lineStart: stop.at, reported: false };
    return {
      hits: this.hits,
      searchedFrom,
      searchedTo: stop?.at ?? this.to,
      resumeFrom: resume.lineStart,
      resume,
      missedBytes: stop?.missedBytes ?? missedBytes,
      truncated: stop !== undefined,
    };
  }
}

export function abortedError(): HoldfastError {
  return new HoldfastError('aborted', 'The search was given up.');
}
