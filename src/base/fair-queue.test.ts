import { expect, it } from 'vitest';
import { FairQueue } from './fair-queue.ts';

function drain(queue: FairQueue<string>, count = Infinity): string {
  let served = '';
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
    served += item;
    if (served.length === count) break;
  }
  return served;
}

it('[H62] owners are served in turn, each in its own order', () => {
  const queue = new FairQueue<string>();
  for (const item of 'abcdef') queue.push('bob', item);
  expect(drain(queue, 2)).toBe('ab');
  for (const item of 'XY') queue.push('alice', item);
  queue.push('carol', '1');
  expect(drain(queue)).toBe('X1cYdef');
  expect(queue.size).toBe(0);
});

it('[H62] idle time earns an owner no credit, and an expensive owner waits for the others', () => {
  const queue = new FairQueue<string>();
  for (const item of 'abc') queue.push('bob', item);
  expect(drain(queue)).toBe('abc');
  for (const item of 'defg') queue.push('bob', item);
  for (const item of 'XYZ') queue.push('alice', item);
  expect(drain(queue, 4)).toBe('XdYe');
  queue.charge('bob', 100);
  for (const item of 'UVW') queue.push('alice', item);
  expect(drain(queue)).toBe('ZUVWfg');
});

it('[H62] one item or all items can be removed', () => {
  const queue = new FairQueue<string>();
  for (const item of 'ab') queue.push('bob', item);
  expect([queue.delete('bob', 'a'), queue.delete('bob', 'a'), queue.size]).toEqual([
    true,
    false,
    1,
  ]);
  expect([queue.clear(), queue.shift()]).toEqual([['b'], undefined]);
});
