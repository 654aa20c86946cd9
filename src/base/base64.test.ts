import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { quickBase64 } from '../host/posix-library.ts';
import { type EncodeBase64, base64Length, encodeBase64, encodeBy } from './base64.ts';

const byNode: EncodeBase64 = (bytes, into) =>
  void Buffer.from(into.buffer, into.byteOffset).write(
    Buffer.from(bytes).toString('base64'),
    'latin1',
  );

afterEach(() => {
  encodeBy(byNode);
});

/** For every size and from every place, with nothing written behind it. */
function expectAsNode(): void {
  const bytes = randomBytes(70_000);
  for (let size = 0; size < 66_000; size = size < 200 ? size + 1 : size * 2 + 1) {
    for (const from of [0, 1, 5, 64]) {
      const piece = bytes.subarray(from, from + size);
      const text = piece.toString('base64');
      const into = Buffer.alloc(text.length + 70, '!');
      expect(encodeBase64(piece, into.subarray(3))).toBe(text.length);
      expect(base64Length(size)).toBe(text.length);
      expect(into.toString('latin1')).toBe(`!!!${text}${'!'.repeat(67)}`);
    }
  }
}

describe('base64 in its place', () => {
  it('[CX29] is what Node makes of it', () => {
    expectAsNode();
  });

  it('[CX29] is the same without a string in between', (context) => {
    const quick = quickBase64();
    if (!quick) return context.skip('this Node does not show its base64');
    expect(encodeBy(quick)).toBe(true);
    expectAsNode();
  });

  it('[CX29] is never taken from a library that gives another, or writes further than it may', () => {
    const urlSafe: EncodeBase64 = (bytes, into) =>
      void Buffer.from(into.buffer, into.byteOffset).write(
        Buffer.from(bytes).toString('base64url'),
      );
    const longer: EncodeBase64 = (bytes, into) => {
      byNode(bytes, into);
      into[base64Length(bytes.length)] = 0;
    };
    expect([encodeBy(urlSafe), encodeBy(longer)]).toEqual([false, false]);
    expectAsNode();
  });

  it('[CX29] has room, or is not written', () => {
    const into = Buffer.alloc(7, '!');
    expect(() => encodeBase64(Buffer.from('four'), into)).toThrowError('8 bytes');
    expect(into.toString()).toBe('!!!!!!!');
  });
});
