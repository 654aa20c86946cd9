import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { quickBase64 } from '../../system/posix-library.ts';
import { type EncodeBase64, base64Length, encodeBase64, encodeBy } from './base64.ts';

const byNode: EncodeBase64 = (bytes, into) => void into.write(bytes.toString('base64'));

afterEach(() => {
  encodeBy(byNode);
});

/** Of many sizes and from several places: those that come out otherwise than by Node, or with something written behind. */
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

describe('base64 in its place', () => {
  it('[CX29] is what Node makes of it', () => {
    expect(wrongSizes()).toEqual([]);
  });

  it('[CX29] is the same without a string in between', (context) => {
    const quick = quickBase64();
    if (!quick) return context.skip('this Node does not show its base64');
    expect(encodeBy(quick)).toBe(true);
    expect(wrongSizes()).toEqual([]);
  });

  it('[CX29] is never taken from a library that gives another, or writes further than it may', () => {
    const urlSafe: EncodeBase64 = (bytes, into) => void into.write(bytes.toString('base64url'));
    const longer: EncodeBase64 = (bytes, into) => {
      byNode(bytes, into);
      into[base64Length(bytes.length)] = 0;
    };
    expect([encodeBy(urlSafe), encodeBy(longer)]).toEqual([false, false]);
    expect(wrongSizes()).toEqual([]);
  });

  it('[CX29] has room, or is not written', () => {
    const into = Buffer.alloc(7, '!');
    expect(() => encodeBase64(Buffer.from('four'), into)).toThrowError('8 bytes');
    expect(into.toString()).toBe('!!!!!!!');
  });
});
