import { isUtf8 } from 'node:buffer';
import * as fc from '../../../test/support/properties.ts';
import { describe, expect, test } from 'vitest';
import { decodeUtf8 } from '../../base/bytes/utf8.ts';
import { headTail, headTailPlan } from './head-tail.ts';
import type { HeadTailText } from '../../protocol/views.ts';
import type { HeadTailLimits } from './head-tail.ts';

const MARKER = /\n\n\.\.\. \[omitted (\d+) bytes\] \.\.\.\n\n/;
const INLINE = / \.\.\. \[truncated (\d+) bytes\] \.\.\. /g;

/** The view as a caller makes it: fetch by the plan, then show. */
function show(output: Buffer | string, limits: HeadTailLimits = {}): HeadTailText {
  const bytes = Buffer.from(output);
  const plan = headTailPlan(bytes.length, limits.maxBytes);
  const head = bytes.subarray(0, plan.headBytes);
  const tail = bytes.subarray(plan.tailOffset, plan.tailOffset + plan.tailBytes);
  return headTail({ head, tail, tailOffset: plan.tailOffset, totalBytes: bytes.length }, limits);
}

const words = fc.constantFrom(
  'a',
  'xyz ',
  'é',
  '€uro',
  '😀',
  '\n',
  '\r',
  '\r\n',
  'long'.repeat(40),
  '10%\r',
);
const bits = fc.constantFrom(
  [0xff],
  [0xe2, 0x82],
  [0x80, 0x80],
  [0xf0, 0x9f, 0x98],
  [0xef, 0xbb, 0xbf],
  [0],
);
const outputs = fc
  .array(fc.oneof({ weight: 4, arbitrary: words.map((word) => [...Buffer.from(word)]) }, bits), {
    maxLength: 120,
  })
  .map((parts) => Buffer.from(parts.flat()));
const limitsOf = fc.record({
  maxBytes: fc.integer({ min: 64, max: 700 }),
  maxLineBytes: fc.integer({ min: 64, max: 300 }),
});

describe('whole output', () => {
  test('[V6] what fits is shown whole, joined without a seam, and not called truncated', () => {
    for (const size of [0, 1, 16_384, 16_385, 20_000, 32_767, 32_768]) {
      const output = 'abcdefghijklmno\n'.repeat(2048).slice(0, size);
      expect(show(output)).toEqual({ text: output });
      const bytes = Buffer.from(output);
      const half = Math.floor(size / 2);
      const parts = {
        head: bytes.subarray(0, half),
        tail: bytes.subarray(half),
        tailOffset: half,
        totalBytes: size,
      };
      expect(headTail(parts)).toEqual({ text: output });
    }
  });

  test('[V6] whole when it fits, for any output and any place where its two parts meet', () => {
    fc.assert(
      fc.property(outputs, fc.nat(), fc.nat(9), (bytes, place, overlap) => {
        const at = bytes.length === 0 ? 0 : place % bytes.length;
        const tailOffset = Math.max(0, at - overlap);
        const parts = {
          head: bytes.subarray(0, at),
          tail: bytes.subarray(tailOffset),
          tailOffset,
          totalBytes: bytes.length,
        };
        const whole = decodeUtf8(bytes);
        const size = Buffer.byteLength(whole);
        const limits = { maxBytes: size, maxLineBytes: Math.max(64, size) };
        expect(headTail(parts, limits)).toEqual({ text: whole });
        expect(
          size < 64 || headTail(parts, { ...limits, maxBytes: size - 1 }).truncated !== undefined,
        ).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('omission', () => {
  test('[V7] the end is never lost: marker and all, the text stays within the size', () => {
    const output = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join('');
    const { text, truncated } = show(output);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768);
    expect(Buffer.byteLength(text)).toBeGreaterThan(32_700);
    expect(text.startsWith('1\n2\n3\n')).toBe(true);
    expect(text.endsWith('199999\n200000\n')).toBe(true);
    expect(truncated).toMatchObject({
      originalBytes: output.length,
      cutLines: 0,
      strategy: 'head_tail',
    });
    expect(Number(MARKER.exec(text)?.[1])).toBe(truncated?.omittedBytes);
    expect((truncated?.retainedBytes ?? 0) + (truncated?.omittedBytes ?? 0)).toBe(output.length);
  });

  test('[V7] one byte too much costs one marker', () => {
    const { text, truncated } = show('x\n'.repeat(16_384) + 'y');
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768);
    expect(text.endsWith('x\ny')).toBe(true);
    expect(truncated?.omittedBytes).toBe(
      32_769 - (Buffer.byteLength(text) - (MARKER.exec(text)?.[0].length ?? 0)),
    );
  });

  test('[V7] for any output: within the size, valid, both ends shown, every byte accounted for, the same each time', () => {
    fc.assert(
      fc.property(outputs, limitsOf, (bytes, limits) => {
        const { text, truncated } = show(bytes, limits);
        const encoded = Buffer.from(text);
        expect(encoded.length).toBeLessThanOrEqual(limits.maxBytes);
        expect(isUtf8(encoded)).toBe(true);
        expect(show(bytes, limits)).toEqual({ text, ...(truncated && { truncated }) });
        const whole = decodeUtf8(bytes);
        expect(text === whole).toBe(truncated === undefined);
        if (truncated === undefined) return;
        expect(text.codePointAt(0)).toBe(whole.codePointAt(0));
        expect(Array.from(text).at(-1)).toBe(Array.from(whole).at(-1));
        const { originalBytes, retainedBytes, omittedBytes, cutLineBytes, cutLines } = truncated;
        expect(originalBytes).toBe(bytes.length);
        expect(retainedBytes + omittedBytes + cutLineBytes).toBe(originalBytes);
        expect(Number(MARKER.exec(text)?.[1] ?? 0)).toBe(omittedBytes);
        const inline = [...text.matchAll(INLINE)].map((mark) => Number(mark[1]));
        expect(inline.length).toBe(cutLines);
        expect(inline.reduce((total, bytes) => total + bytes, 0)).toBe(cutLineBytes);
      }),
      { numRuns: 3000 },
    );
  });

  test('[V7] the shown parts are parts of the whole in their order', () => {
    fc.assert(
      fc.property(outputs, limitsOf, (bytes, limits) => {
        const { text } = show(bytes, limits);
        const whole = decodeUtf8(bytes);
        let at = 0;
        for (const part of text.split(
          /\n\n\.\.\. \[omitted \d+ bytes\] \.\.\.\n\n| \.\.\. \[truncated \d+ bytes\] \.\.\. /,
        )) {
          const found = whole.indexOf(part, at);
          expect(found).toBeGreaterThanOrEqual(at);
          at = found + part.length;
        }
      }),
      { numRuns: 2000 },
    );
  });

  test('[V7] a short side leaves its share to the other', () => {
    const long = Buffer.from('0123456789abcde\n'.repeat(4096));
    const few = Buffer.from('few\n');
    const late = headTail({
      head: few,
      tail: long,
      tailOffset: 1_000_000,
      totalBytes: 1_000_000 + long.length,
    });
    expect(Buffer.byteLength(late.text)).toBeGreaterThan(32_700);
    const early = headTail({ head: long, tail: few, tailOffset: 1_000_000, totalBytes: 1_000_004 });
    expect(Buffer.byteLength(early.text)).toBeGreaterThan(32_700);
    expect(early.text.endsWith('few\n')).toBe(true);
  });

  test('[V7] if no marker fits, the end is shown and the counts are exact', () => {
    const { text, truncated } = show('first line\nthe very last word', { maxBytes: 9 });
    expect(text).toBe('last word');
    expect(truncated).toMatchObject({ originalBytes: 29, retainedBytes: 9, omittedBytes: 20 });
    expect(show('abc', { maxBytes: 0 }).text).toBe('');
  });

  test('[V8] bytes that are no longer stored count as omitted and are reported separately', () => {
    const head = Buffer.from('begin €').subarray(0, 8);
    const tail = Buffer.from('😀 end').subarray(2);
    const view = headTail({
      head,
      tail,
      tailOffset: 5000,
      totalBytes: 5000 + tail.length,
      lostBytes: 4992,
    });
    expect(view.text).toBe('begin \n\n... [omitted 4996 bytes] ...\n\n end');
    expect(view.truncated).toMatchObject({
      omittedBytes: 4996,
      retainedBytes: 10,
      lostBytes: 4992,
    });
    const none = headTail({
      head: Buffer.alloc(0),
      tail: Buffer.from('end'),
      tailOffset: 7,
      totalBytes: 10,
      lostBytes: 7,
    });
    expect(none.text).toBe('\n\n... [omitted 7 bytes] ...\n\nend');
  });
});

describe('long lines', () => {
  test('[V9] a long line keeps its beginning and its end and says how much was cut', () => {
    const output = `before\nBEGIN${'x'.repeat(5000)}END\nafter\n`;
    const { text, truncated } = show(output);
    const line = text.split('\n')[1] ?? '';
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(2048);
    expect(Buffer.byteLength(line)).toBeGreaterThan(2040);
    expect(line.startsWith('BEGINxxx')).toBe(true);
    expect(line.endsWith('xxxEND')).toBe(true);
    expect(text.startsWith('before\n') && text.endsWith('\nafter\n')).toBe(true);
    expect(truncated).toMatchObject({ omittedBytes: 0, cutLines: 1 });
    expect(line).toContain(`[truncated ${truncated?.cutLineBytes} bytes]`);
    expect(show('x'.repeat(2048))).toEqual({ text: 'x'.repeat(2048) });
    expect(show('x'.repeat(2049)).truncated?.cutLines).toBe(1);
  });

  test('[V9] a carriage return ends a line: the newest frame of a progress bar is shown', () => {
    const frames = Array.from({ length: 5000 }, (_, index) => `\rloading ${index}`).join('');
    const { text, truncated } = show(frames);
    expect(text.endsWith('\rloading 4999')).toBe(true);
    expect(truncated?.cutLines).toBe(0);
    const small = frames.slice(0, 20_000);
    expect(show(small)).toEqual({ text: small });
  });

  test('[V9] one line larger than everything: its first and its last bytes', () => {
    const { text, truncated } = show(`BEGIN${'x'.repeat(100_000)}END`);
    expect(text.startsWith('BEGIN') && text.endsWith('END')).toBe(true);
    expect(Buffer.byteLength(text)).toBeLessThan(5000);
    expect(truncated).toMatchObject({ originalBytes: 100_008, cutLines: 0 });
  });

  test('[V9] a line is as long as it is shown: bytes that become U+FFFD count three', () => {
    const { text, truncated } = show(Buffer.alloc(1000, 0xff));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2048);
    expect(truncated?.cutLines).toBe(1);
    expect(show(Buffer.alloc(682, 0xff)).truncated).toBeUndefined();
  });

  test('[V9] no line is shown longer than allowed', () => {
    fc.assert(
      fc.property(outputs, limitsOf, (bytes, limits) => {
        for (const line of show(bytes, limits).text.split(/[\r\n]/)) {
          expect(Buffer.byteLength(line)).toBeLessThanOrEqual(limits.maxLineBytes);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

test('[V10] the plan fetches each end once and never overlaps', () => {
  expect(headTailPlan(0)).toEqual({ headBytes: 0, tailOffset: 0, tailBytes: 0 });
  expect(headTailPlan(40_000)).toEqual({ headBytes: 32_768, tailOffset: 32_768, tailBytes: 7232 });
  expect(headTailPlan(1_000_000, 100)).toEqual({
    headBytes: 100,
    tailOffset: 999_900,
    tailBytes: 100,
  });
});

test('[V10] parts far larger than the plan asks for are cut to the same size', () => {
  for (const unit of ['\n', '\r', 'x', 'word\n', '\xff']) {
    const head = Buffer.alloc(8 * 1024 * 1024, unit, 'latin1');
    const parts = { head, tail: head, tailOffset: head.length, totalBytes: head.length * 2 };
    expect(Buffer.byteLength(headTail(parts).text)).toBeLessThanOrEqual(32_768);
  }
});
