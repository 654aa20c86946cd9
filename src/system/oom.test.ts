import { expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { OomCounter } from './oom.ts';

it('[H51] a victim counts for the next exit only', () => {
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

it('[H51] a victim on the machine does not count if the last exit was long ago', () => {
  let victims = 0;
  const clock = new FakeClock();
  const machine = new OomCounter({ own: false, read: () => victims }, clock);
  const own = new OomCounter({ own: true, read: () => victims }, clock);
  victims += 1;
  clock.advance(3000);
  expect(machine.struck()).toBe(false);
  expect(own.struck()).toBe(true);
});

it('[H104] after a failed read of the count neither this exit nor the next counts as a victim', () => {
  let victims: number | undefined = 7;
  const counter = new OomCounter({ own: true, read: () => victims }, new FakeClock());
  victims = undefined;
  expect(counter.struck()).toBe(false);
  victims = 8;
  expect(counter.struck()).toBe(false);
  victims = 9;
  expect(counter.struck()).toBe(true);
});
