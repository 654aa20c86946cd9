import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyedSum } from './keyed-sum.ts';

test('[H6] what a start is known by is HMAC-SHA256, as earlier keepers wrote it down', () => {
  const keys = fc.uint8Array({ maxLength: 64 });
  const texts = fc.string({ unit: 'binary', maxLength: 300 });
  fc.assert(
    fc.property(keys, texts, (key, text) => {
      const expected = createHmac('sha256', key).update(text).digest('hex');
      expect(keyedSum(Buffer.from(key))(text)).toBe(expected);
    }),
  );
  expect(() => keyedSum(Buffer.alloc(65))).toThrow('too long');
});
