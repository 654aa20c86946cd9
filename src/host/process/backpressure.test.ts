import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Backpressure } from './backpressure.ts';

it('[CX25] output is held beyond the bound, goes on when the reader does, and when the reader is gone', () => {
  const clock = new FakeClock();
  let released = 0;
  const pace = new Backpressure(clock, () => (released += 1));
  expect(pace.exceeded(1_000_000)).toBe(false);
  const reads = (limitOffset: number, offset: number): void =>
    pace.read({ reader: 'r', after: 0, nextAfter: 1, limitOffset }, offset);
  reads(100, 0);
  expect(pace.exceeded(100)).toBe(false);
  expect(pace.exceeded(101)).toBe(true);
  // The reader is there but has not moved.
  clock.advance(9000);
  reads(100, 101);
  expect([pace.holding, released]).toEqual([true, 0]);
  reads(200, 101);
  expect([pace.holding, released]).toEqual([false, 1]);
  expect(pace.exceeded(300)).toBe(true);
  clock.advance(10_000);
  expect([pace.holding, released]).toEqual([false, 2]);
  expect(pace.exceeded(1_000_000)).toBe(false);
  expect(clock.pending).toBe(0);
});

it('[H46] of several readers the one that is farthest behind counts, with a name or without', () => {
  for (const names of [
    ['fast', 'slow'],
    [undefined, undefined],
  ]) {
    const clock = new FakeClock();
    let released = 0;
    const pace = new Backpressure(clock, () => (released += 1));
    const [fast, slow] = names;
    pace.read({ reader: fast, after: 0, nextAfter: 5, limitOffset: 100 }, 0);
    pace.read({ reader: slow, after: 0, nextAfter: 5, limitOffset: 100 }, 0);
    expect(pace.exceeded(101)).toBe(true);
    pace.read({ reader: fast, after: 5, nextAfter: 9, limitOffset: 500 }, 101);
    expect([pace.holding, released]).toEqual([true, 0]);
    pace.read({ reader: slow, after: 5, nextAfter: 7, limitOffset: 300 }, 101);
    expect([pace.holding, released]).toEqual([false, 1]);
    expect(pace.exceeded(301)).toBe(true);
    // The slow one is gone, the fast one is not.
    clock.advance(9000);
    pace.read({ reader: fast, after: 9, nextAfter: 9, limitOffset: 500 }, 301);
    clock.advance(1000);
    expect([pace.holding, released]).toEqual([false, 2]);
    expect(pace.exceeded(501)).toBe(true);
    pace.gone();
    expect([pace.holding, released, clock.pending]).toEqual([false, 3, 0]);
  }
});
