import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { PortLooks } from './port-waits.ts';

it('[N3] waits that begin at the same time read the tables once', () => {
  const clock = new FakeClock();
  const tables = new Set<unknown>();
  const looks = new PortLooks<string>({
    clock,
    listening: (_, port, seen) => {
      tables.add(seen);
      return port === 2 ? port : undefined;
    },
  });
  for (let wait = 0; wait < 20; wait += 1) expect(looks.now('p', 1)).toBeUndefined();
  expect(tables.size).toBe(1);
  clock.advance(50);
  expect(looks.now('p', 2)).toBe(2);
  expect(tables.size).toBe(2);
});

it('[N3] all waits for ports share one look, at most every 50 ms, however much is printed', () => {
  const clock = new FakeClock();
  const tables = new Set<unknown>();
  let listens: number | undefined;
  const looks = new PortLooks<string>({
    clock,
    listening: (_, port, seen) => {
      tables.add(seen);
      return port === listens ? port : undefined;
    },
  });
  const found: string[] = [];
  const stops = [1, 2, 3, 4, 5].map((n) =>
    looks.add({ process: `p${n}`, port: n, found: (port) => found.push(`p${n}:${port}`) }),
  );
  for (let ms = 0; ms < 1000; ms += 1) {
    for (let line = 0; line < 10; line += 1) looks.hurry();
    clock.advance(1);
  }
  expect(tables.size).toBeGreaterThan(10);
  expect(tables.size).toBeLessThanOrEqual(20);
  listens = 3;
  clock.advance(50);
  expect(found).toEqual(['p3:3']);
  // While nothing is printed it is looked less and less often.
  const before = tables.size;
  clock.advance(10_000);
  expect(tables.size - before).toBeLessThanOrEqual(45);
  for (const stop of stops) stop();
  expect(clock.pending).toBe(0);
});
