// The text of an output for a model: clean, folded, its head and tail within a size. Omitted bytes are counted exactly,
// and a mark names the call that fetches them.

import { decodeUtf8, prefixWithin, suffixWithin } from '../../base/bytes/utf8.ts';
import { foldRows } from './row-folding.ts';
import { textRows, type Row } from './text-sheet.ts';

/** A contiguous part of the output; `offset` counts from the beginning of the output. */
export interface Stretch {
  readonly offset: number;
  readonly bytes: Buffer;
}

export interface ModelTextInput {
  /** The range of the output that is shown. */
  readonly from: number;
  readonly to: number;
  /** One stretch, or head and tail with a gap that was not fetched or is not stored. */
  readonly stretches: readonly Stretch[];
  readonly maxBytes: number;
  /** The call by which a model gets the output from an offset on. */
  readonly fetchCall: (offset: number, bytes: number) => string;
}

export interface ModelText {
  readonly text: string;
  readonly truncated?: ModelTruncation;
}

/** original = retained + omitted. */
interface ModelTruncation {
  readonly original_bytes: number;
  readonly retained_bytes: number;
  readonly omitted_bytes: number;
  readonly strategy: 'head_tail';
  /** Where the omitted part begins. */
  readonly omitted_offset: number;
}

/** The maximum for one line, if there are several. */
const MAX_LINE_BYTES = 2048;

export function modelText(input: ModelTextInput): ModelText {
  const parts = input.stretches.map(({ offset, bytes }) => foldRows(textRows(bytes, offset)));
  const rows = parts.flat();
  const unbroken = parts.length <= 1 && covers(input);
  const whole = joinRows(rows, endsWithBreak(input));
  if (unbroken && Buffer.byteLength(whole) <= input.maxBytes) return { text: whole };
  if (!unbroken) return headAndTail(input, parts);
  const most = rows.length === 1 ? input.maxBytes : Math.min(MAX_LINE_BYTES, input.maxBytes);
  const cut = rows.map((row) => cutLine(row, most, input));
  const text = joinRows(cut, endsWithBreak(input));
  if (Buffer.byteLength(text) > input.maxBytes) return headAndTail(input, parts);
  const at = cut.find(({ omitted }) => omitted > 0)?.omittedOffset ?? input.from;
  return answer(input, text, { omitted: omittedIn(cut), at });
}

interface Shown extends Row {
  /** Bytes cut out of the line, and where they begin. */
  readonly omitted: number;
  readonly omittedOffset: number;
}

function headAndTail(input: ModelTextInput, parts: readonly (readonly Row[])[]): ModelText {
  const { from, to, maxBytes } = input;
  const budget = Math.max(0, maxBytes - Buffer.byteLength(mark(input, to, to - from)));
  const rows = shownRows(input, parts, budget);
  // The head ends with the first stretch at the latest.
  const headRows = parts[0]?.length ?? 0;
  let head = fitting(rows.slice(0, headRows), budget / 2);
  const tail = fitting(rows.slice(head).toReversed(), budget - sizeOf(rows.slice(0, head)));
  const firstTail = Math.max(rows.length - tail, parts.length > 1 ? headRows : 0);
  const [bottom, left] = [rows.slice(firstTail), budget - sizeOf(rows.slice(firstTail))];
  head = fitting(rows.slice(0, Math.min(headRows, firstTail)), left);
  const top = rows.slice(0, head);
  const start = top.at(-1)?.end ?? from;
  const end = bottom[0]?.start ?? to;
  const text =
    joinRows(top, true) + mark(input, start, end - start) + joinRows(bottom, endsWithBreak(input));
  return answer(input, text, { omitted: end - start + omittedIn([...top, ...bottom]), at: start });
}

/** Long lines are cut in their middle, or at the gap between two stretches. */
function shownRows(
  input: ModelTextInput,
  parts: readonly (readonly Row[])[],
  budget: number,
): Shown[] {
  const few = parts.every((part) => part.length <= 1);
  const most = few ? Math.max(0, Math.floor(budget / 2) - 1) : Math.min(MAX_LINE_BYTES, budget);
  return parts.flatMap((part, index) =>
    part.map((row, at) => {
      if (parts.length === 2 && index === 0 && at === part.length - 1) return beginning(row, most);
      if (parts.length === 2 && index === 1 && at === 0) return ending(row, most);
      return cutLine(row, most, input);
    }),
  );
}

function beginning(row: Row, maxBytes: number): Shown {
  const bytes = Buffer.from(row.text);
  const kept = prefixWithin(bytes, maxBytes);
  const text = decodeUtf8(bytes.subarray(0, kept));
  if (row.plain) return { ...row, text, end: row.start + kept, omitted: 0, omittedOffset: row.end };
  return { ...row, text, omitted: bytes.length - kept, omittedOffset: row.start };
}

function ending(row: Row, maxBytes: number): Shown {
  const bytes = Buffer.from(row.text);
  const start = suffixWithin(bytes, maxBytes);
  const text = decodeUtf8(bytes.subarray(start));
  if (row.plain)
    return { ...row, text, start: row.start + start, omitted: 0, omittedOffset: row.start };
  return { ...row, text, omitted: start, omittedOffset: row.start };
}

function answer(
  { from, to }: ModelTextInput,
  text: string,
  { omitted, at }: { omitted: number; at: number },
): ModelText {
  const original = to - from;
  const truncated: ModelTruncation = {
    original_bytes: original,
    retained_bytes: original - omitted,
    omitted_bytes: omitted,
    strategy: 'head_tail',
    omitted_offset: at,
  };
  return omitted === 0 ? { text } : { text, truncated };
}

function mark({ fetchCall }: ModelTextInput, offset: number, bytes: number): string {
  return `... [omitted ${bytes} bytes: ${fetchCall(offset, bytes)}] ...\n`;
}

/** A long line keeps its beginning and its end. The position of the cut is exact only for an unchanged line. */
function cutLine(row: Row, maxBytes: number, { fetchCall }: ModelTextInput): Shown {
  const whole = { ...row, omitted: 0, omittedOffset: row.start };
  const bytes = Buffer.from(row.text);
  if (bytes.length <= maxBytes) return whole;
  const note = (cut: number, offset: number): string =>
    ` ... [omitted ${cut} bytes: ${fetchCall(offset, cut)}] ... `;
  const budget = Math.max(0, maxBytes - Buffer.byteLength(note(bytes.length, row.end)));
  const headEnd = prefixWithin(bytes, Math.floor(budget / 2));
  const tailStart = Math.max(headEnd, suffixWithin(bytes, Math.ceil(budget / 2)));
  const cut = tailStart - headEnd;
  const offset = row.plain ? row.start + headEnd : row.start;
  const text =
    decodeUtf8(bytes.subarray(0, headEnd)) +
    note(cut, offset) +
    decodeUtf8(bytes.subarray(tailStart));
  return { ...row, text, omitted: cut, omittedOffset: offset };
}

/** How many rows fit, counted from the first. */
function fitting(rows: readonly Row[], budget: number): number {
  let left = budget;
  let count = 0;
  for (const row of rows) {
    left -= Buffer.byteLength(row.text) + 1;
    if (left < 0) break;
    count += 1;
  }
  return count;
}

function sizeOf(rows: readonly Row[]): number {
  return rows.reduce((total, { text }) => total + Buffer.byteLength(text) + 1, 0);
}

function omittedIn(rows: readonly Shown[]): number {
  return rows.reduce((total, { omitted }) => total + omitted, 0);
}

function joinRows(rows: readonly Row[], lineBreak: boolean): string {
  const text = rows.map((row) => row.text).join('\n');
  return lineBreak && rows.length > 0 ? `${text}\n` : text;
}

function covers({ from, to, stretches: [only] }: ModelTextInput): boolean {
  return only === undefined ? from === to : only.offset === from && only.bytes.length === to - from;
}

function endsWithBreak({ stretches }: ModelTextInput): boolean {
  return stretches.at(-1)?.bytes.at(-1) === 0x0a;
}
