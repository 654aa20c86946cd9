// Folds repeated rows: equal rows are shown once with their count. Of the steps of a progress bar, which differ in
// their numbers, the first and the last stay.

import type { Row } from './text-sheet.ts';

/** The least number of equal rows for which a fold is shorter. */
const MIN_REPEATS = 3;
const MAX_BLOCK = 8;
const BLANK_LINES = 5;

type Fold = { readonly rows: number; readonly shown: readonly Row[] };

export function foldRows(rows: readonly Row[]): Row[] {
  const folded: Row[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at];
    if (!row) break;
    const fold =
      foldBinary(rows, at) ?? foldBlank(rows, at) ?? foldBlock(rows, at) ?? foldProgress(rows, at);
    folded.push(...(fold?.shown ?? [row]));
    at += fold?.rows ?? 1;
  }
  return folded;
}

/** Lines of binary data, including single text lines between them. */
function foldBinary(rows: readonly Row[], at: number): Fold | undefined {
  if (rows[at]?.binary !== true) return undefined;
  let count = runLength(rows, at, (row) => row.binary || row.bad);
  while (rows[at + count - 1]?.binary !== true) count -= 1;
  const { start, end } = span(rows, at, count);
  return { rows: count, shown: [noteRow(`[${end - start} bytes of binary data]`, start, end)] };
}

function foldBlank(rows: readonly Row[], at: number): Fold | undefined {
  const count = runLength(rows, at, ({ text }) => text === '');
  if (count < BLANK_LINES) return undefined;
  const { start, end } = span(rows, at, count);
  return { rows: count, shown: [noteRow(`[${count} blank lines]`, start, end)] };
}

/** One or several lines that repeat at once, unchanged. */
function foldBlock(rows: readonly Row[], at: number): Fold | undefined {
  for (let size = 1; size <= MAX_BLOCK && at + size * MIN_REPEATS <= rows.length; size += 1) {
    const times = repeats(rows, at, size);
    if (times < MIN_REPEATS) continue;
    const once = rows.slice(at, at + size);
    if (once.every(({ text }) => text === '')) return undefined;
    const { start, end } = span(rows, at + size, (times - 1) * size);
    const what = size === 1 ? 'the line above' : `the ${size} lines above`;
    const note = noteRow(`[${what} came ${times - 1} more times]`, start, end);
    return { rows: times * size, shown: [...once, note] };
  }
  return undefined;
}

function repeats(rows: readonly Row[], at: number, size: number): number {
  let same = 0;
  while (rows[at + size + same] !== undefined && equal(rows[at + same], rows[at + size + same]))
    same += 1;
  return Math.floor(same / size) + 1;
}

function equal(one: Row | undefined, two: Row | undefined): boolean {
  return one?.text === two?.text && one?.binary !== true && two?.binary !== true;
}

/** Lines with a percentage that differ only in numbers and in the length of a bar. */
function foldProgress(rows: readonly Row[], at: number): Fold | undefined {
  const shape = progressShape(rows[at]?.text ?? '');
  if (shape === undefined) return undefined;
  const count = runLength(rows, at, ({ text }) => progressShape(text) === shape);
  const [opening, closing] = [rows[at], rows[at + count - 1]];
  if (count <= MIN_REPEATS || !opening || !closing) return undefined;
  const { start, end } = span(rows, at + 1, count - 2);
  const note = noteRow(`[${count - 2} more steps of this progress]`, start, end);
  return { rows: count, shown: [opening, note, closing] };
}

function progressShape(text: string): string | undefined {
  if (!/\d%/.test(text)) return undefined;
  return text
    .replace(/\d+(?:[.,:]\d+)*/g, '0')
    .replace(/[#=█▇▆▅▄▃▂▁▏▎▍▌▋▊▉▓▒░━─╸╺●○■□·.>~-]+/gu, '=')
    .replace(/\s+/g, ' ')
    .replace(/[ =]+/g, '=');
}

function runLength(rows: readonly Row[], at: number, belongs: (row: Row) => boolean): number {
  let count = 0;
  for (let row = rows[at]; row && belongs(row); row = rows[at + count]) count += 1;
  return count;
}

function span(rows: readonly Row[], at: number, count: number): { start: number; end: number } {
  return { start: rows[at]?.start ?? 0, end: rows[at + count - 1]?.end ?? 0 };
}

function noteRow(text: string, start: number, end: number): Row {
  return { text, start, end, plain: false, bad: false, binary: false };
}
