// UTF-8 at the level of bytes: where a text may be cut, how large decoded bytes become, and a streaming decoder.
// Decoding is lenient: bytes that are not UTF-8 become U+FFFD by the WHATWG rule (one for each longest prefix of a
// character), and a byte order mark is kept. A "unit" is one character, or the bytes that become one U+FFFD.

import { isUtf8 } from 'node:buffer';

/** Size of U+FFFD. */
const REPLACEMENT_BYTES = 3;
/** Most continuation bytes of a character. */
const MAX_CONTINUATION_BYTES = 3;

export function decodeUtf8(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** The cut at or before `end` that splits no character: up to 3 bytes before `end` if a character is incomplete there. */
export function cutEnd(bytes: Uint8Array, end = bytes.length): number {
  for (let at = end - 1; at >= 0 && at >= end - MAX_CONTINUATION_BYTES; at -= 1) {
    const byte = bytes[at] ?? 0;
    if (isContinuation(byte)) continue;
    const incomplete = lengthByFirst(byte) > end - at && -unitAt(bytes, at, end) === end - at;
    return incomplete ? at : end;
  }
  return end;
}

/**
 * The first unit boundary at or after `start`. The bytes before `start` decide. At index 0 those are unknown, so up to 3
 * continuation bytes are skipped.
 */
export function cutStart(bytes: Uint8Array, start = 0): number {
  if (!isContinuation(bytes[start] ?? 0)) return start;
  if (start === 0) {
    let at = 1;
    while (at < MAX_CONTINUATION_BYTES && isContinuation(bytes[at] ?? 0)) at += 1;
    return at;
  }
  for (let at = start - 1; at >= 0 && at >= start - MAX_CONTINUATION_BYTES; at -= 1) {
    if (isContinuation(bytes[at] ?? 0)) continue;
    return Math.max(start, at + Math.abs(unitAt(bytes, at, bytes.length)));
  }
  return start;
}

/** Size of the bytes after decoding and encoding again: 1 to 3 times their size. */
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

/** Length of the longest prefix whose encoded text fits in `maxEncodedBytes`. */
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

/** Start of the longest suffix whose encoded text fits in `maxEncodedBytes`. */
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

/** The longest prefix of a text whose encoding fits in `maxBytes`; never splits a surrogate pair. */
export function limitText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

/** Decodes chunks; the result does not depend on where the bytes were split. */
export class Utf8Stream {
  private rest: Uint8Array = new Uint8Array(0);

  push(bytes: Uint8Array): string {
    const all = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    const end = cutEnd(all);
    this.rest = Uint8Array.from(all.subarray(end));
    return decodeUtf8(all.subarray(0, end));
  }

  /** The last chunk ended inside a character. */
  get pending(): boolean {
    return this.rest.length > 0;
  }

  /** Decodes the incomplete character at the end, if there is one. */
  end(): string {
    const text = decodeUtf8(this.rest);
    this.rest = new Uint8Array(0);
    return text;
  }
}

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte <= 0xbf;
}

function encodedUnit(unit: number): number {
  return unit > 0 ? unit : REPLACEMENT_BYTES;
}

/** Length of a character by its first byte; 1 for an invalid first byte. */
function lengthByFirst(byte: number): number {
  if (byte < 0xc2 || byte > 0xf4) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

/** Length of the unit that begins at `at`; negative if it becomes U+FFFD. */
function unitAt(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return 1;
  const length = lengthByFirst(first);
  if (length === 1) return -1;
  for (let index = 1; index < length; index += 1) {
    if (at + index >= end) return -index;
    const byte = bytes[at + index] ?? 0;
    if (!(index === 1 ? isSecond(first, byte) : isContinuation(byte))) return -index;
  }
  return length;
}

/** The second byte has a narrower range where overlong forms, surrogates or code points above U+10FFFF are possible. */
function isSecond(first: number, byte: number): boolean {
  if (first === 0xe0) return byte >= 0xa0 && byte <= 0xbf;
  if (first === 0xed) return byte >= 0x80 && byte <= 0x9f;
  if (first === 0xf0) return byte >= 0x90 && byte <= 0xbf;
  if (first === 0xf4) return byte >= 0x80 && byte <= 0x8f;
  return isContinuation(byte);
}
