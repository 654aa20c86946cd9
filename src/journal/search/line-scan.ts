// Finds the matching lines of a block, and how to show them. Pure, because it runs in the main thread (plain text) and in
// the search worker (regular expressions).

import { stripAnsi } from '../../base/bytes/ansi.ts';
import { cutEnd, decodeUtf8, limitText, suffixWithin } from '../../base/bytes/utf8.ts';

export interface ScanInput {
  /** Lines without the last line break. */
  readonly bytes: Uint8Array;
  /** In a later piece of a long line: the previous piece has searched the bytes before. */
  readonly skipBytes: number;
  /** In a piece whose line continues: the next piece searches from here on. */
  readonly settledBytes: number;
  /** The last line may continue. */
  readonly unfinished: boolean;
  /** Match on what was printed, control sequences included. */
  readonly raw: boolean;
  readonly limit: number;
}

export interface LineHit {
  /** Position of the line in the bytes. */
  readonly start: number;
  readonly end: number;
  readonly line: string;
  readonly match: string;
}

interface Found {
  readonly index: number;
  readonly length: number;
}

/** The first match in `text` that begins at `from` or later. */
export type Find = (text: string, from: number) => Found | undefined;

export interface TextFinder {
  readonly find: Find;
  /** False if no line can match: most blocks end here. */
  mayContain(bytes: Uint8Array, raw: boolean): boolean;
}

/** Largest encoded size of a shown line, and of a match. */
const SHOWN_BYTES = 2048;
const LF = 0x0a;
const ESC = 0x1b;
const CUT_BEFORE = '... ';
const CUT_BEHIND = ' ...';

export function scanLines(input: ScanInput, find: Find): LineHit[] {
  if (input.skipBytes > 0 || input.settledBytes < input.bytes.length) return scanPiece(input, find);
  const hits: LineHit[] = [];
  const lines = decodeUtf8(input.bytes).split('\n');
  let counted = 0;
  let start = 0;
  for (const [index, line] of lines.entries()) {
    const text = visible(line, input.raw, input.unfinished && index === lines.length - 1);
    const found = find(text, 0);
    if (found === undefined) continue;
    for (; counted < index; counted += 1) start = input.bytes.indexOf(LF, start) + 1;
    const end = input.bytes.indexOf(LF, start);
    hits.push(hitOf(text, found, { start, end: end < 0 ? input.bytes.length : end }));
    if (hits.length >= input.limit) break;
  }
  return hits;
}

function scanPiece(input: ScanInput, find: Find): LineHit[] {
  const goesOn = input.settledBytes < input.bytes.length;
  const upTo = (end: number): string => {
    const text = decodeUtf8(input.bytes.subarray(0, cutEnd(input.bytes, end)));
    return visible(text, input.raw, true);
  };
  const text = goesOn
    ? upTo(input.bytes.length)
    : visible(decodeUtf8(input.bytes), input.raw, input.unfinished);
  const found = find(text, input.skipBytes > 0 ? upTo(input.skipBytes).length : 0);
  if (found === undefined) return [];
  // A match that touches the end of the piece may continue: the next piece sees all of it.
  if (
    goesOn &&
    found.index + found.length === text.length &&
    found.index >= upTo(input.settledBytes).length
  )
    return [];
  return [hitOf(text, found, { start: 0, end: input.bytes.length })];
}

/** A finder for plain text: compares bytes where these equal the shown text, otherwise characters. */
export function textFinder(pattern: string, ignoreCase: boolean): TextFinder {
  const fold = ignoreCase ? foldCase : (text: string): string => text;
  const wanted = fold(pattern);
  const bytes = Buffer.from(pattern);
  // U+FFFD in the pattern may match any invalid bytes.
  const byBytes = !ignoreCase && !bytes.toString().includes('\ufffd');
  const find: Find = (text, from) => {
    const index = fold(text).indexOf(wanted, from);
    return index < 0 ? undefined : { index, length: wanted.length };
  };
  return {
    find,
    mayContain(block, raw) {
      const buffer = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
      const plain = raw || !buffer.includes(ESC);
      if (plain && byBytes) return buffer.includes(bytes);
      const text = decodeUtf8(block);
      return fold(plain ? text : stripAnsi(text)).includes(wanted);
    },
  };
}

/** Lower case that keeps the length of every character: U+0130 would grow, and a final sigma is folded to a sigma. */
export function foldCase(text: string): string {
  return text.replaceAll('\u0130', 'i').toLowerCase().replaceAll('\u03c2', '\u03c3');
}

/** A context line as shown: its beginning and its end. */
export function contextLine(bytes: Uint8Array, raw: boolean, goesOn: boolean): string {
  const text = visible(decodeUtf8(bytes), raw, goesOn);
  if (!goesOn && Buffer.byteLength(text) <= SHOWN_BYTES) return detached(text);
  const space = SHOWN_BYTES - CUT_BEFORE.length - CUT_BEHIND.length;
  if (goesOn) return detached(`${limitText(text, space)}${CUT_BEHIND}`);
  const head = limitText(text, space / 2);
  return detached(`${head}${CUT_BEHIND} ${limitTextEnd(text, space / 2)}`);
}

function visible(line: string, raw: boolean, unfinished: boolean): string {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  return raw ? text : stripAnsi(text, unfinished);
}

function hitOf(text: string, found: Found, place: { start: number; end: number }): LineHit {
  const match = text.slice(found.index, found.index + found.length);
  return {
    ...place,
    line: detached(around(text, found)),
    match: detached(limitText(match, SHOWN_BYTES)),
  };
}

/** The part of the line around the match that may be shown, with the match in the middle. */
function around(text: string, { index, length }: Found): string {
  if (Buffer.byteLength(text) <= SHOWN_BYTES) return text;
  const space = SHOWN_BYTES - CUT_BEFORE.length - CUT_BEHIND.length;
  const match = limitText(text.slice(index, index + length), space);
  const rest = space - Buffer.byteLength(match);
  const before = text.slice(0, index);
  const share = limitTextEnd(before, Math.floor(rest / 2));
  const behind = match.length < length ? '' : text.slice(index + length, index + length + rest);
  const right = limitText(behind, rest - Buffer.byteLength(share));
  const left = limitTextEnd(before, rest - Buffer.byteLength(right));
  const all = index + match.length + right.length === text.length;
  return `${left.length < index ? CUT_BEFORE : ''}${left}${match}${right}${all ? '' : CUT_BEHIND}`;
}

/** The longest suffix of a text whose encoding fits in `maxBytes`. */
function limitTextEnd(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at least one byte.
  const bytes = Buffer.from(text.slice(Math.max(0, text.length - maxBytes)));
  return decodeUtf8(bytes.subarray(suffixWithin(bytes, maxBytes)));
}

/** A copy: V8 keeps the whole text alive as long as a slice of it. */
function detached(text: string): string {
  return Buffer.from(text).toString();
}
