// UTF-8 at the level of bytes: where a text may be cut, how large bytes become once decoded, and a decoder for pieces.
// Decoding is lenient everywhere: what is not UTF-8 becomes U+FFFD by the WHATWG rule (one for each longest beginning of
// a character), and a byte order mark is kept. A "unit" is what the decoder takes at once: a character, or the bytes that
// become one U+FFFD.

import { isUtf8 } from 'node:buffer';

/** U+FFFD, encoded. */
const REPLACEMENT_BYTES = 3;
/** Bytes of a character behind its first. */
const LONGEST_REST = 3;

export function decodeUtf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** Where to cut so that no character is split: `end`, or up to 3 bytes before it when a character is incomplete there. */
export function cutEnd(bytes: Uint8Array, end = bytes.length): number {
  for (let at = end - 1; at >= 0 && at >= end - LONGEST_REST; at -= 1) {
    const byte = bytes[at] ?? 0;
    if (isRest(byte)) continue;
    const incomplete = lengthByFirst(byte) > end - at && -unitAt(bytes, at, end) === end - at;
    return incomplete ? at : end;
  }
  return end;
}

/**
 * The first index from `start` on at which a unit begins, given that the text was cut at `start`. What stands before
 * `start` decides; at index 0, where that is unknown, up to 3 bytes that can only be the rest of a character are skipped.
 */
export function cutStart(bytes: Uint8Array, start = 0): number {
  if (!isRest(bytes[start] ?? 0)) return start;
  if (start === 0) {
    let at = 1;
    while (at < LONGEST_REST && isRest(bytes[at] ?? 0)) at += 1;
    return at;
  }
  for (let at = start - 1; at >= 0 && at >= start - LONGEST_REST; at -= 1) {
    if (isRest(bytes[at] ?? 0)) continue;
    return Math.max(start, at + Math.abs(unitAt(bytes, at, bytes.length)));
  }
  return start;
}

/** Size of the decoded text when it is encoded again: never less than the bytes, up to three times as much. */
export function encodedLength(bytes: Uint8Array): number {
  if (isUtf8(bytes)) return bytes.length;
  let size = 0;
  for (let at = 0; at < bytes.length;) {
    const unit = unitAt(bytes, at, bytes.length);
    size += encodedUnit(unit);
    at += Math.abs(unit);
  }
  return size;
}

/** How many bytes from the beginning can be shown in `maxEncodedBytes`. */
export function prefixWithin(bytes: Uint8Array, maxEncodedBytes: number): number {
  const sure = bytes.length <= maxEncodedBytes ? bytes.length : cutEnd(bytes, maxEncodedBytes);
  let at = isUtf8(bytes.subarray(0, sure)) ? sure : 0;
  let left = maxEncodedBytes - at;
  while (at < bytes.length) {
    const unit = unitAt(bytes, at, bytes.length);
    left -= encodedUnit(unit);
    if (left < 0) break;
    at += Math.abs(unit);
  }
  return at;
}

/** The index from which on the bytes up to the end can be shown in `maxEncodedBytes`. */
export function suffixWithin(bytes: Uint8Array, maxEncodedBytes: number): number {
  const start =
    bytes.length <= maxEncodedBytes ? 0 : cutStart(bytes, bytes.length - maxEncodedBytes);
  let over = encodedLength(bytes.subarray(start)) - maxEncodedBytes;
  let at = start;
  while (over > 0) {
    const unit = unitAt(bytes, at, bytes.length);
    over -= encodedUnit(unit);
    at += Math.abs(unit);
  }
  return at;
}

/** As much of the beginning as fits; `bytes` says how many bytes that were. */
export function decodeWithin(
  bytes: Uint8Array,
  maxEncodedBytes: number,
): { readonly text: string; readonly bytes: number } {
  const end = prefixWithin(bytes, maxEncodedBytes);
  return { text: decodeUtf8(bytes.subarray(0, end)), bytes: end };
}

/** The beginning of a text that is at most `maxBytes` when encoded; a surrogate pair stays together. */
export function limitText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

/** Decodes pieces: joined, the answers are what decoding the joined pieces gives, wherever they were split. */
export class Utf8Stream {
  private rest: Uint8Array = new Uint8Array(0);

  push(bytes: Uint8Array): string {
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    const end = cutEnd(all);
    this.rest = Uint8Array.from(all.subarray(end));
    return decodeUtf8(all.subarray(0, end));
  }

  /** The last piece ended inside a character. */
  get pending(): boolean {
    return this.rest.length > 0;
  }

  /** What is left of a character that never became complete. */
  end(): string {
    const text = decodeUtf8(this.rest);
    this.rest = new Uint8Array(0);
    return text;
  }
}

function isRest(byte: number): boolean {
  return byte >= 0x80 && byte <= 0xbf;
}

function encodedUnit(unit: number): number {
  return unit > 0 ? unit : REPLACEMENT_BYTES;
}

/** What the first byte promises; 1 also for bytes that begin nothing. */
function lengthByFirst(byte: number): number {
  if (byte < 0xc2 || byte > 0xf4) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

/** Length of the unit at `at`, where a unit begins; negative when it becomes U+FFFD. */
function unitAt(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const length = lengthByFirst(first);
  if (length === 1) return -1;
  for (let index = 1; index < length; index += 1) {
    if (at + index >= end) return -index;
    const byte = bytes[at + index] ?? 0;
    if (!(index === 1 ? isSecond(first, byte) : isRest(byte))) return -index;
  }
  return length;
}

/** Narrower than the other bytes where the first would allow overlong forms, surrogates or more than U+10FFFF. */
function isSecond(first: number, byte: number): boolean {
  if (first === 0xe0) return byte >= 0xa0 && byte <= 0xbf;
  if (first === 0xed) return byte >= 0x80 && byte <= 0x9f;
  if (first === 0xf0) return byte >= 0x90 && byte <= 0xbf;
  if (first === 0xf4) return byte >= 0x80 && byte <= 0x8f;
  return isRest(byte);
}
