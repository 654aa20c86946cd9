import { expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { OomCounter } from './oom.ts';

it('[H51] a victim counts for the exit that follows it, and for no later one', () => {
  for (const own of [true, false]) {
    let victims = 7;
    const clock = new FakeClock();
    const counter = new OomCounter({ own, read: () => victims }, clock);
    expect(counter.struck()).toBe(false);
    victims += 1;
    expect(counter.struck()).toBe(true);
    expect(counter.struck()).toBe(false);
  }
});

it("[H51] a victim somewhere on the machine since the last exit, long ago, is not taken for this one's end", () => {
  let victims = 0;
  const clock = new FakeClock();
  const machine = new OomCounter({ own: false, read: () => victims }, clock);
  const own = new OomCounter({ own: true, read: () => victims }, clock);
  victims += 1;
  clock.advance(3000);
  expect(machine.struck()).toBe(false);
  expect(own.struck()).toBe(true);
});

it('[H104] a count that cannot be read makes nobody a victim, neither now nor with the next exit', () => {
  let victims: number | undefined = 7;
  const counter = new OomCounter({ own: true, read: () => victims }, new FakeClock());
  victims = undefined;
  expect(counter.struck()).toBe(false);
  victims = 8;
  expect(counter.struck()).toBe(false);
  victims = 9;
  expect(counter.struck()).toBe(true);
});
