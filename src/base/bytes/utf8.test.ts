import * as fc from '../../../test/support/properties.ts';
import { describe, expect, test } from 'vitest';
import {
  cutEnd,
  cutStart,
  decodeUtf8,
  encodedLength,
  limitText,
  prefixWithin,
  suffixWithin,
  Utf8Stream,
} from './utf8.ts';

/** Bytes that come near UTF-8 in every way: whole characters, their beginnings, their rests, forbidden bytes. */
const nearUtf8 = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 4 }).map((text) => [...Buffer.from(text)]),
      fc.constantFrom([0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xf0, 0x9f], [0x80], [0xbf, 0x80], [0xc0]),
      fc.constantFrom(
        [0xed, 0xa0, 0x80],
        [0xf4, 0x90, 0x80, 0x80],
        [0xe0, 0x80, 0x80],
        [0xef, 0xbb, 0xbf],
        [0xff],
      ),
      fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 4 }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => Buffer.from(parts.flat()));

function reference(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true, fatal: false }).decode(bytes);
}

describe('decoding', () => {
  test('[V1] invalid bytes become U+FFFD as in the WHATWG decoder, a byte order mark stays', () => {
    expect(decodeUtf8(Buffer.from([0xef, 0xbb, 0xbf, 0x61]))).toBe('\ufeffa');
    expect(decodeUtf8(Buffer.from([0x61, 0xf0, 0x9f, 0x98, 0x62, 0xff]))).toBe('a\ufffdb\ufffd');
    fc.assert(
      fc.property(nearUtf8, (bytes) => {
        expect(decodeUtf8(bytes)).toBe(reference(bytes));
      }),
      { numRuns: 2000 },
    );
  });

  test('[V1] a view into a larger buffer is decoded, not the buffer', () => {
    expect(decodeUtf8(new Uint8Array(Buffer.from('abcdef')).subarray(2, 4))).toBe('cd');
  });

  test('[V2] chunks decode like the whole, wherever they are split', () => {
    fc.assert(
      fc.property(nearUtf8, (bytes) => {
        for (let at = 0; at <= bytes.length; at += 1) {
          const stream = new Utf8Stream();
          const text =
            stream.push(bytes.subarray(0, at)) + stream.push(bytes.subarray(at)) + stream.end();
          expect(text).toBe(decodeUtf8(bytes));
        }
        const stream = new Utf8Stream();
        let text = '';
        for (const byte of bytes) text += stream.push(Uint8Array.of(byte));
        expect(text + stream.end()).toBe(decodeUtf8(bytes));
      }),
      { numRuns: 1000 },
    );
  });

  test('[V2] a stream keeps its own copy of an incomplete character', () => {
    const lent = Buffer.from('€').subarray(0, 2);
    const stream = new Utf8Stream();
    expect(stream.push(lent)).toBe('');
    lent.fill(0);
    expect(stream.push(Buffer.from('€').subarray(2))).toBe('€');
    expect(stream.end()).toBe('');
  });
});

describe('cutting', () => {
  test('[V3] a cut splits no character: both sides decode to the parts of the whole', () => {
    fc.assert(
      fc.property(nearUtf8, (bytes) => {
        for (let at = 0; at <= bytes.length; at += 1) {
          const before = cutEnd(bytes, at);
          expect(at - before).toBeLessThanOrEqual(3);
          expect(decodeUtf8(bytes.subarray(0, before)) + decodeUtf8(bytes.subarray(before))).toBe(
            decodeUtf8(bytes),
          );
          if (at === 0) continue;
          const behind = cutStart(bytes, at);
          expect(behind - at).toBeLessThanOrEqual(3);
          expect(decodeUtf8(bytes.subarray(0, behind)) + decodeUtf8(bytes.subarray(behind))).toBe(
            decodeUtf8(bytes),
          );
        }
      }),
      { numRuns: 1000 },
    );
  });

  test('[V3] at the start of unknown text up to three continuation bytes are skipped', () => {
    expect(cutStart(Buffer.from('é').subarray(1))).toBe(1);
    expect(cutStart(Buffer.from('😀x').subarray(1))).toBe(3);
    expect(cutStart(Buffer.from([0x80, 0x80, 0x80, 0x80, 0x80]))).toBe(3);
    expect(cutStart(Buffer.from('abc'))).toBe(0);
    expect(cutStart(Buffer.alloc(0))).toBe(0);
  });

  test('[V3] bytes that can never become a character are not held back', () => {
    expect(cutEnd(Buffer.from([0x61, 0xc0]))).toBe(2);
    expect(cutEnd(Buffer.from([0xe0, 0x80]))).toBe(2);
    expect(cutEnd(Buffer.from([0xed, 0xa0]))).toBe(2);
    expect(cutEnd(Buffer.from([0x61, 0xe2, 0x82]))).toBe(1);
    expect(cutEnd(Buffer.from([0xf0, 0x9f, 0x98]))).toBe(0);
  });
});

describe('limiting', () => {
  test('[V4] the size of decoded text is that of its encoding: an invalid byte counts three', () => {
    expect(encodedLength(Buffer.from([0xff, 0x61]))).toBe(4);
    fc.assert(
      fc.property(nearUtf8, (bytes) => {
        expect(encodedLength(bytes)).toBe(Buffer.byteLength(decodeUtf8(bytes)));
      }),
      { numRuns: 2000 },
    );
  });

  test('[V4] the longest prefix and suffix that fit, without splitting a character', () => {
    fc.assert(
      fc.property(nearUtf8, fc.nat(40), (bytes, max) => {
        const whole = decodeUtf8(bytes);
        const used = prefixWithin(bytes, max);
        const text = decodeUtf8(bytes.subarray(0, used));
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(max);
        expect(text + decodeUtf8(bytes.subarray(used))).toBe(whole);
        const more = String.fromCodePoint(whole.codePointAt(text.length) ?? 0);
        expect(used === bytes.length || Buffer.byteLength(text + more) > max).toBe(true);

        const start = suffixWithin(bytes, max);
        const end = decodeUtf8(bytes.subarray(start));
        expect(Buffer.byteLength(end)).toBeLessThanOrEqual(max);
        expect(decodeUtf8(bytes.subarray(0, start)) + end).toBe(whole);
        const last = Array.from(decodeUtf8(bytes.subarray(0, start))).at(-1) ?? '';
        expect(start === 0 || Buffer.byteLength(last + end) > max).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  test('[V4] a string is limited by its encoded size and keeps surrogate pairs together', () => {
    expect(limitText('a😀b', 4)).toBe('a');
    expect(limitText('a😀b', 5)).toBe('a😀');
    expect(limitText('abc', 0)).toBe('');
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(60), (text, max) => {
        const limited = limitText(text, max);
        expect(text.startsWith(limited)).toBe(true);
        expect(Buffer.byteLength(limited)).toBeLessThanOrEqual(max);
        const next = String.fromCodePoint(text.codePointAt(limited.length) ?? 0);
        expect(limited === text || Buffer.byteLength(limited + next) > max).toBe(true);
      }),
    );
  });
});
