import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { fastBase64 } from '../../system/posix-library.ts';
import { type EncodeBase64, base64Length, encodeBase64, useFastBase64 } from './base64.ts';

const byNode: EncodeBase64 = (bytes, into) => void into.write(bytes.toString('base64'));

afterEach(() => {
  useFastBase64(byNode);
});

/** Sizes whose encoding differs from Node's, or that write beyond their end. */
function wrongSizes(): number[] {
  const wrong: number[] = [];
  const bytes = randomBytes(70_000);
  for (let size = 0; size < 66_000; size = size < 200 ? size + 1 : size * 2 + 1) {
    for (const from of [0, 1, 5, 64]) {
      const piece = bytes.subarray(from, from + size);
      const text = piece.toString('base64');
      const into = Buffer.alloc(text.length + 70, '!');
      encodeBase64(piece, into.subarray(3));
      const same = into.toString('latin1') === `!!!${text}${'!'.repeat(67)}`;
      if (!same || base64Length(size) !== text.length) wrong.push(size);
    }
  }
  return wrong;
}

describe('base64 into a buffer', () => {
  it("[CX29] it equals Node's encoding", () => {
    expect(wrongSizes()).toEqual([]);
  });

  it('[CX29] the native encoder gives the same', (context) => {
    const fast = fastBase64();
    if (!fast) return context.skip('this Node does not show its base64');
    expect(useFastBase64(fast)).toBe(true);
    expect(wrongSizes()).toEqual([]);
  });

  it('[CX29] an encoder with other results, or that writes beyond its end, is refused', () => {
    const urlSafe: EncodeBase64 = (bytes, into) => void into.write(bytes.toString('base64url'));
    const longer: EncodeBase64 = (bytes, into) => {
      byNode(bytes, into);
      into[base64Length(bytes.length)] = 0;
    };
    expect([useFastBase64(urlSafe), useFastBase64(longer)]).toEqual([false, false]);
    expect(wrongSizes()).toEqual([]);
  });

  it('[CX29] a buffer that is too small stays unwritten', () => {
    const into = Buffer.alloc(7, '!');
    expect(() => encodeBase64(Buffer.from('four'), into)).toThrowError('8 bytes');
    expect(into.toString()).toBe('!!!!!!!');
  });
});
