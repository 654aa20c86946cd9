// The head/tail view: the output of a process for a model. The beginning and the end within a size, a marker with the
// exact size of what is omitted, and no split characters.
//
// Every byte of the output is either shown (an invalid byte as U+FFFD), omitted between head and tail, or cut out of a long
// line: originalBytes = retainedBytes + omittedBytes + cutLineBytes. A line ends at \n, \r or \r\n, so that each frame of a
// progress bar is a line.

import { isUtf8 } from 'node:buffer';
import {
  cutEnd,
  cutStart,
  decodeUtf8,
  encodedLength,
  prefixWithin,
  suffixWithin,
} from '../../base/bytes/utf8.ts';
import type { HeadTailText, Truncation } from '../../protocol/views.ts';

export interface HeadTailInput {
  /** The first bytes of the output, at most up to the first missing byte. */
  readonly head: Buffer;
  /** The last bytes of the output, contiguous from `tailOffset` on. May overlap the head. */
  readonly tail: Buffer;
  readonly tailOffset: number;
  /** Everything that the process printed, stored or not. */
  readonly totalBytes: number;
  /** Omitted bytes that are no longer stored. */
  readonly lostBytes?: number;
}

export interface HeadTailLimits {
  /** Limit of the whole text in UTF-8, with markers. */
  readonly maxBytes?: number | undefined;
  /** Limit of one shown line without its line break; at least 64. */
  readonly maxLineBytes?: number | undefined;
}

export interface HeadTailPlan {
  readonly headBytes: number;
  readonly tailOffset: number;
  readonly tailBytes: number;
}

/** The shown head or tail. */
interface Side {
  readonly text: string;
  readonly shownBytes: number;
  /** Bytes of the input that the text covers, including those cut out of lines. */
  readonly coveredBytes: number;
  readonly cutLines: number;
  readonly cutLineBytes: number;
  /** Of the head: whole lines at its beginning that are shown as they are. */
  readonly plainBytes: number;
}

interface Line {
  readonly start: number;
  /** Index of the line break. */
  readonly end: number;
  /** Index after the line break. */
  readonly next: number;
}

interface Space {
  readonly bytes: number;
  readonly maxLine: number;
  /** The line at the inner end is incomplete. */
  readonly open: boolean;
}

const DEFAULT_MAX_BYTES = 32_768;
const DEFAULT_MAX_LINE_BYTES = 2048;
/** The longest inline marker has about 40 bytes. */
const SMALLEST_LINE_BYTES = 64;
/** One character on each side of the marker. */
const SMALLEST_ROOM = 8;
const LF = 0x0a;
const CR = 0x0d;

/** How much to read of each end for a view of `maxBytes`; the two do not overlap. */
export function headTailPlan(totalBytes: number, maxBytes = DEFAULT_MAX_BYTES): HeadTailPlan {
  const headBytes = Math.min(totalBytes, maxBytes);
  const tailOffset = Math.max(headBytes, totalBytes - maxBytes);
  return { headBytes, tailOffset, tailBytes: totalBytes - tailOffset };
}

export function headTail(input: HeadTailInput, limits: HeadTailLimits = {}): HeadTailText {
  const maxBytes = limits.maxBytes ?? DEFAULT_MAX_BYTES;
  const maxLine = Math.max(limits.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES, SMALLEST_LINE_BYTES);
  const contiguous = input.tailOffset <= input.head.length;
  const head = contiguous ? joined(input) : input.head.subarray(0, cutEnd(input.head));
  if (contiguous) {
    const whole = fromStart(head, { bytes: maxBytes, maxLine, open: false });
    if (whole.coveredBytes === head.length) return view(input, whole.text, [whole]);
  }
  const tail = contiguous ? head : input.tail.subarray(cutStart(input.tail));
  // The final marker has smaller numbers, so it is not longer than this one.
  const bytes = maxBytes - marker(input.totalBytes).length;
  if (bytes < SMALLEST_ROOM) {
    const newest = fromEnd(tail, { bytes: Math.max(0, maxBytes), maxLine, open: true });
    return view(input, newest.text, [newest]);
  }
  let first = fromStart(head, { bytes: Math.floor(bytes / 2), maxLine, open: !contiguous });
  const rest = contiguous ? tail.subarray(first.coveredBytes) : tail;
  const last = fromEnd(rest, { bytes: bytes - first.shownBytes, maxLine, open: true });
  // The head may use what a short tail does not need.
  const forHead = { bytes: bytes - last.shownBytes, maxLine, open: true };
  if (!contiguous) first = fromStart(head, forHead, first.plainBytes);
  const omitted = input.totalBytes - first.coveredBytes - last.coveredBytes;
  return view(input, `${first.text}${marker(omitted)}${last.text}`, [first, last]);
}

function joined(input: HeadTailInput): Buffer {
  const tail = input.tail.subarray(Math.max(0, input.head.length - input.tailOffset));
  return tail.length === 0 ? input.head : Buffer.concat([input.head, tail]);
}

function marker(omittedBytes: number): string {
  return `\n\n... [omitted ${omittedBytes} bytes] ...\n\n`;
}

function view(input: HeadTailInput, text: string, sides: readonly Side[]): HeadTailText {
  const total = (field: 'coveredBytes' | 'cutLines' | 'cutLineBytes'): number =>
    sides.reduce((total, side) => total + side[field], 0);
  const covered = total('coveredBytes');
  const cutLineBytes = total('cutLineBytes');
  const omittedBytes = input.totalBytes - covered;
  if (omittedBytes === 0 && cutLineBytes === 0) return { text };
  const truncated: Truncation = {
    originalBytes: input.totalBytes,
    retainedBytes: covered - cutLineBytes,
    omittedBytes,
    cutLines: total('cutLines'),
    cutLineBytes,
    lostBytes: input.lostBytes ?? 0,
    strategy: 'head_tail',
  };
  return { text, truncated };
}

/** `known`: bytes at the beginning that are whole lines and fit. */
function fromStart(bytes: Buffer, space: Space, known = 0): Side {
  const shown = new Shown(bytes, space.maxLine);
  const plain = shown.clean ? endOfPlainLines(bytes, space, known) : 0;
  if (plain > 0) shown.add(0, plain);
  for (let at = plain; at < bytes.length;) {
    const line = lineFrom(bytes, at);
    const left = space.bytes - shown.bytes;
    const open = space.open && line.end === bytes.length;
    if (!open && shown.addLine(line, left)) {
      at = line.next;
      continue;
    }
    const most = open || shown.isLong(line) ? Math.min(left, space.maxLine) : left;
    const end = at + prefixWithin(bytes.subarray(at, line.next), most);
    shown.add(at, end);
    at = end;
    break;
  }
  return shown.side(plain, (parts) => parts.join(''));
}

function fromEnd(bytes: Buffer, space: Space): Side {
  const shown = new Shown(bytes, space.maxLine);
  const plain = shown.clean ? startOfPlainLines(bytes, space) : bytes.length;
  if (plain < bytes.length) shown.add(plain, bytes.length);
  for (let next = plain; next > 0;) {
    const line = lineBefore(bytes, next);
    const left = space.bytes - shown.bytes;
    const open = space.open && line.start === 0;
    if (!open && shown.addLine(line, left)) {
      next = line.start;
      continue;
    }
    const most = open || shown.isLong(line) ? Math.min(left, space.maxLine) : left;
    shown.add(line.start + suffixWithin(bytes.subarray(line.start, next), most), next);
    break;
  }
  return shown.side(0, (parts) => parts.toReversed().join(''));
}

/** Collects the shown lines in either direction, and counts. */
class Shown {
  bytes = 0;
  private readonly input: Buffer;
  /** The usual case: valid UTF-8, shown unchanged. */
  readonly clean: boolean;
  private readonly maxLine: number;
  private readonly parts: string[] = [];
  /** Adjacent ranges are merged and decoded as one. */
  private range: { start: number; end: number } | undefined;
  private covered = 0;
  private cutLines = 0;
  private cutLineBytes = 0;

  constructor(input: Buffer, maxLine: number) {
    this.input = input;
    this.clean = isUtf8(input);
    this.maxLine = maxLine;
  }

  isLong(line: Line): boolean {
    return line.end - line.start > this.maxLine || this.size(line.start, line.end) > this.maxLine;
  }

  /** Adds the line with its line break, cut if it is long; false if it does not fit. */
  addLine(line: Line, space: number): boolean {
    if (!this.isLong(line)) {
      if (this.size(line.start, line.next) > space) return false;
      this.add(line.start, line.next);
      return true;
    }
    const content = this.input.subarray(line.start, line.end);
    const keep = this.maxLine - inlineMark(content.length).length;
    const headEnd = prefixWithin(content, Math.floor(keep / 2));
    const tailStart = suffixWithin(content, Math.ceil(keep / 2));
    const mark = inlineMark(tailStart - headEnd);
    const head = content.subarray(0, headEnd);
    const tail = this.input.subarray(line.start + tailStart, line.next);
    const size = encodedLength(head) + mark.length + encodedLength(tail);
    if (size > space) return false;
    this.flush();
    this.parts.push(`${decodeUtf8(head)}${mark}${decodeUtf8(tail)}`);
    this.bytes += size;
    this.covered += line.next - line.start;
    this.cutLines += 1;
    this.cutLineBytes += tailStart - headEnd;
    return true;
  }

  add(start: number, end: number): void {
    this.bytes += this.size(start, end);
    this.covered += end - start;
    if (this.range?.end === start) this.range.end = end;
    else if (this.range?.start === end) this.range.start = start;
    else {
      this.flush();
      this.range = { start, end };
    }
  }

  side(plainBytes: number, join: (parts: readonly string[]) => string): Side {
    this.flush();
    return {
      text: join(this.parts),
      shownBytes: this.bytes,
      coveredBytes: this.covered,
      cutLines: this.cutLines,
      cutLineBytes: this.cutLineBytes,
      plainBytes,
    };
  }

  /** As shown. */
  private size(start: number, end: number): number {
    return this.clean ? end - start : encodedLength(this.input.subarray(start, end));
  }

  private flush(): void {
    if (this.range !== undefined)
      this.parts.push(decodeUtf8(this.input.subarray(this.range.start, this.range.end)));
    this.range = undefined;
  }
}

function inlineMark(cutBytes: number): string {
  return ` ... [truncated ${cutBytes} bytes] ... `;
}

/** End of the leading lines that have a line break, are not long, and fit. A fast path without objects. */
function endOfPlainLines(bytes: Buffer, { bytes: space, maxLine }: Space, known: number): number {
  const limit = Math.min(bytes.length, space);
  let done = known;
  while (done < limit) {
    // Lines that end within the length of one are not long: one look at all of them.
    const last = bytes.lastIndexOf(LF, Math.min(done + maxLine, limit - 1));
    if (last >= done) {
      done = last + 1;
      continue;
    }
    let at = done;
    while (at < limit && bytes[at] !== LF && bytes[at] !== CR) at += 1;
    const next = at + lineBreakAt(bytes, at);
    if (at === limit || at - done > maxLine || next > space) return done;
    done = next;
  }
  return done;
}

/** Start of the trailing lines that are not long and fit, without the very first line. */
function startOfPlainLines(bytes: Buffer, { bytes: space, maxLine }: Space): number {
  for (let done = bytes.length; ;) {
    const end = done - lineBreakBefore(bytes, done);
    const first = bytes.indexOf(LF, Math.max(0, end - maxLine - 1, bytes.length - space - 1)) + 1;
    if (first > 0 && first < end) {
      done = first;
      continue;
    }
    let start = end;
    while (start > 0 && bytes[start - 1] !== LF && bytes[start - 1] !== CR) start -= 1;
    if (start === 0 || end - start > maxLine || bytes.length - start > space) return done;
    done = start;
  }
}

/** Length of the line break that begins there. */
function lineBreakAt(bytes: Buffer, at: number): number {
  if (bytes[at] === CR) return bytes[at + 1] === LF ? 2 : 1;
  return bytes[at] === LF ? 1 : 0;
}

/** Length of the line break that ends there. */
function lineBreakBefore(bytes: Buffer, next: number): number {
  if (bytes[next - 1] === LF) return bytes[next - 2] === CR && next > 1 ? 2 : 1;
  return bytes[next - 1] === CR ? 1 : 0;
}

function lineFrom(bytes: Buffer, start: number): Line {
  let end = start;
  while (end < bytes.length && bytes[end] !== LF && bytes[end] !== CR) end += 1;
  if (end === bytes.length) return { start, end, next: end };
  return { start, end, next: end + lineBreakAt(bytes, end) };
}

function lineBefore(bytes: Buffer, next: number): Line {
  const end = next - lineBreakBefore(bytes, next);
  let start = end;
  while (start > 0 && bytes[start - 1] !== LF && bytes[start - 1] !== CR) start -= 1;
  return { start, end, next };
}
