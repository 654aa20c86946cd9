import { randomBytes } from 'node:crypto';
import { crc32 as byTable } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { fastCrc32 } from '../../system/posix-library.ts';
import { crc32, useFastCrc32 } from './crc32.ts';

afterEach(() => {
  useFastCrc32(byTable);
});

describe('crc32', () => {
  it('[J23] libdeflate gives the same for every size and position', (context) => {
    const fast = fastCrc32();
    if (!fast) return context.skip('there is no libdeflate here');
    expect(useFastCrc32(fast)).toBe(true);
    const bytes = randomBytes(300_000);
    for (let size = 0; size < bytes.length; size = size * 2 + 1) {
      for (const from of [0, 1, 5, 64]) {
        const piece = bytes.subarray(from, from + size);
        expect(crc32(piece, 77)).toBe(byTable(piece, 77));
      }
    }
  });

  it('[J23] a function with other results is refused', () => {
    expect(useFastCrc32((bytes, value) => (byTable(bytes, value) ^ 1) >>> 0)).toBe(false);
    const bytes = randomBytes(100_000);
    expect(crc32(bytes)).toBe(byTable(bytes));
  });
});
