import { expect, test } from 'vitest';
import { threadId, threadTimeNs } from './thread-time.ts';

test('[S11] a working thread uses processor time', () => {
  const thread = threadId();
  const before = threadTimeNs(thread) ?? 0n;
  expect(before).toBeGreaterThan(0n);
  // Work until the clock of the whole program has counted 30 ms; nothing else runs in it meanwhile that counts.
  const from = process.cpuUsage();
  while (process.cpuUsage(from).user + process.cpuUsage(from).system < 30_000);
  const spentMs = Number((threadTimeNs(thread) ?? 0n) - before) / 1e6;
  expect(spentMs).toBeGreaterThan(0);
  expect(threadTimeNs(0)).toBeUndefined();
});
