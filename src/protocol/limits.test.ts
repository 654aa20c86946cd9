import { expect, test } from 'vitest';
import { completeLimits } from './limits.ts';

test('[H31] a journal keeps a quarter from its beginning, unless another head is given, and never more than all', () => {
  const heads = [
    {},
    { journalBytes: 2 ** 21 },
    { journalBytes: 2 ** 21, journalHeadBytes: 0 },
    { journalBytes: 2 ** 21, journalHeadBytes: 2 ** 24 },
  ].map((given) => completeLimits(given).journalHeadBytes);
  expect(heads).toEqual([2 ** 24, 2 ** 19, 0, 2 ** 21]);
});
