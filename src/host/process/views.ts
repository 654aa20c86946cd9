// Views of a process's journal: byte counts, head-and-tail text, the last lines for a completion, and a byte source for
// searches.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { cutStart, decodeUtf8 } from '../../base/bytes/utf8.ts';
import type { ByteCounts } from '../../protocol/process.ts';
import type { HeadTailText } from '../../protocol/views.ts';
import type { ByteSource } from '../../journal/search/byte-source.ts';
import { headTail, headTailPlan, type HeadTailLimits } from '../../journal/read/head-tail.ts';
import { readRange, type Readable } from '../../journal/read/reader.ts';

/** Read in one turn of the event loop: about a millisecond. */
const STEP_BYTES = 256 * 1024;

export function byteCounts(
  journal: Pick<Readable, 'sources' | 'visibleOffset'> & { readonly lostBytes: number },
): ByteCounts {
  const { visibleOffset: total, lostBytes: lost } = journal;
  const held = storedBytes(journal);
  const retained = Math.min(total, held) - Math.min(lost, held);
  return { total, retained, dropped: Math.max(0, total - retained - lost), lost };
}

function storedBytes(journal: Pick<Readable, 'sources'>): number {
  let bytes = 0;
  for (const { firstOffset, endOffset } of journal.sources()) bytes += endOffset - firstOffset;
  return bytes;
}

async function headTailOf(journal: Readable, limits: HeadTailLimits): Promise<HeadTailText> {
  const totalBytes = journal.visibleOffset;
  // Before the first await: a process that is removed meanwhile has no segments.
  const held = storedBytes(journal);
  const plan = headTailPlan(totalBytes, limits.maxBytes);
  const head = await contiguous(journal, 0, Math.min(plan.headBytes, totalBytes));
  const headBytes = head.offset === 0 ? head.bytes : Buffer.alloc(0);
  if (headBytes.length === totalBytes) {
    return headTail(
      { head: headBytes, tail: Buffer.alloc(0), tailOffset: totalBytes, totalBytes },
      limits,
    );
  }
  const from = Math.max(plan.tailOffset, headBytes.length);
  const tail = await lastContiguous(journal, from, totalBytes);
  const lostBytes = Math.max(0, totalBytes - held);
  if (headBytes.length + tail.bytes.length > STEP_BYTES) await nextTurn();
  return headTail(
    { head: headBytes, tail: tail.bytes, tailOffset: tail.offset, totalBytes, lostBytes },
    limits,
  );
}

/** Callers that want the same text at the same moment share it: thousands may wait for one exit. */
export class SharedTexts {
  private readonly underWay = new Map<Readable, { key: string; text: Promise<HeadTailText> }>();

  of(journal: Readable, limits: HeadTailLimits): Promise<HeadTailText> {
    if (journal.visibleOffset === 0) return Promise.resolve({ text: '' });
    const key = `${journal.visibleOffset} ${limits.maxBytes} ${limits.maxLineBytes}`;
    const known = this.underWay.get(journal);
    if (known?.key === key) return known.text;
    const text = headTailOf(journal, limits);
    const mine = { key, text };
    this.underWay.set(journal, mine);
    const forget = (): void => {
      if (this.underWay.get(journal) === mine) this.underWay.delete(journal);
    };
    text.then(forget, forget);
    return text;
  }
}

/** The end of the output as text, at most `maxBytes`, beginning with a whole line if there is one. */
export async function lastLines(journal: Readable, maxBytes: number): Promise<string> {
  const end = journal.visibleOffset;
  if (end === 0) return '';
  const { bytes, offset } = await lastContiguous(journal, Math.max(0, end - maxBytes), end);
  if (offset === 0) return decodeUtf8(bytes);
  const lineEnd = bytes.indexOf(10);
  const whole = lineEnd >= 0 && lineEnd + 1 < bytes.length ? lineEnd + 1 : cutStart(bytes);
  return decodeUtf8(bytes.subarray(whole));
}

export function byteSource(journal: Readable): ByteSource {
  return {
    start: journal.sources()[0]?.firstOffset ?? 0,
    end: journal.visibleOffset,
    read: (offset, maxBytes) => readRange(journal, offset, maxBytes),
  };
}

/** Reads from `offset` on until `length` bytes are read or bytes are missing. */
async function contiguous(
  journal: Readable,
  offset: number,
  length: number,
): Promise<{ offset: number; bytes: Buffer }> {
  const parts: Buffer[] = [];
  let at = offset;
  while (at < offset + length) {
    if (at > offset) await nextTurn();
    const found = await readRange(journal, at, Math.min(STEP_BYTES, offset + length - at));
    if (found === undefined || (parts.length > 0 && found.offset !== at)) break;
    if (parts.length === 0 && found.offset !== at)
      return { offset: found.offset, bytes: found.bytes };
    parts.push(found.bytes);
    at += found.bytes.length;
  }
  return { offset, bytes: joined(parts) };
}

/** Without a copy of a single part: it may have megabytes. */
function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return first && parts.length === 1 ? first : Buffer.concat(parts);
}

/** The contiguous bytes directly before `end`, from `from` on at the earliest. */
async function lastContiguous(
  journal: Readable,
  from: number,
  end: number,
): Promise<{ offset: number; bytes: Buffer }> {
  let parts: Buffer[] = [];
  let start = from;
  for (let at = from; at < end;) {
    if (at > from) await nextTurn();
    const found = await readRange(journal, at, Math.min(STEP_BYTES, end - at));
    if (found === undefined) break;
    if (found.offset !== at) {
      parts = [];
      start = found.offset;
    }
    parts.push(found.bytes);
    at = found.offset + found.bytes.length;
  }
  const bytes = joined(parts);
  return start + bytes.length >= end
    ? { offset: start, bytes: bytes.subarray(0, end - start) }
    : { offset: end, bytes: Buffer.alloc(0) };
}
