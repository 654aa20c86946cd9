import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Shares } from '../shares.ts';
import { Crowding } from './crowding.ts';

function crowd() {
  const clock = new FakeClock();
  const live = new Shares('liveCount', 100);
  const crowding = new Crowding({ clock, live, processors: 2 });
  const start = (owner: string): boolean => {
    live.add(owner);
    return crowding.givesWay(owner);
  };
  const starts = (owner: string, count: number): boolean[] =>
    Array.from({ length: count }, () => start(owner));
  return { clock, live, starts };
}

it('[H105] a lone owner gives way to nobody', () => {
  const { starts } = crowd();
  expect(starts('bob', 20)).not.toContain(true);
});

it('[H105] beside another owner, programs above two for each processor give way', () => {
  const { starts } = crowd();
  starts('alice', 1);
  expect(starts('bob', 6)).toEqual([false, false, false, false, true, true]);
  expect(starts('alice', 3)).not.toContain(true);
});

it('[H105] an owner without live processes counts for a minute after its last start', () => {
  const { starts, live, clock } = crowd();
  starts('bob', 4);
  starts('alice', 1);
  live.delete('alice');
  expect(starts('bob', 2)).toEqual([true, true]);
  clock.advance(60_000);
  expect(starts('bob', 1)).toEqual([false]);
});
