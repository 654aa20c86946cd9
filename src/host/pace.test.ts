import { expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { Pace } from './pace.ts';

it('[CX25] output is held beyond the bound, goes on when the reader does, and when the reader is gone', () => {
  const clock = new FakeClock();
  let released = 0;
  const pace = new Pace(clock, () => (released += 1));
  expect(pace.exceeded(1_000_000)).toBe(false);
  pace.reader(100, 0);
  expect(pace.exceeded(100)).toBe(false);
  expect(pace.exceeded(101)).toBe(true);
  // The reader is there but has not moved.
  clock.advance(9000);
  pace.reader(100, 101);
  expect([pace.holding, released]).toEqual([true, 0]);
  pace.reader(200, 101);
  expect([pace.holding, released]).toEqual([false, 1]);
  expect(pace.exceeded(300)).toBe(true);
  clock.advance(10_000);
  expect([pace.holding, released]).toEqual([false, 2]);
  expect(pace.exceeded(1_000_000)).toBe(false);
  expect(clock.pending).toBe(0);
});
