import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { PeerWatch } from './peer-watch.ts';

const SECOND_MS = 1000;

function watched(options: { pid?: number; pingAfterTicks?: number } = {}) {
  const clock = new FakeClock();
  const seen = { owes: true, pings: 0, silences: 0 };
  const watch = new PeerWatch({
    clock,
    owes: () => seen.owes,
    ping: () => void (seen.pings += 1),
    pid: () => options.pid,
    silent: () => void (seen.silences += 1),
    ...(options.pingAfterTicks !== undefined && { pingAfterTicks: options.pingAfterTicks }),
  });
  watch.expect();
  const pass = (seconds: number): void => {
    for (let tick = 0; tick < seconds; tick += 1) clock.advance(SECOND_MS);
  };
  return { watch, seen, pass };
}

describe('a peer that owes answers', () => {
  it('[K22] is pinged after two quiet seconds, and is silent thirteen seconds after that', () => {
    const { seen, pass } = watched();
    pass(1);
    expect(seen).toMatchObject({ pings: 0, silences: 0 });
    pass(1);
    expect(seen).toMatchObject({ pings: 1, silences: 0 });
    pass(12);
    expect(seen).toMatchObject({ pings: 1, silences: 0 });
    pass(1);
    expect(seen).toMatchObject({ pings: 1, silences: 1 });
  });

  it('[K22] is never silent while it answers pings, however long a call is parked', () => {
    const { watch, seen, pass } = watched({ pingAfterTicks: 4 });
    for (let round = 1; round <= 100; round += 1) {
      pass(4);
      expect(seen).toMatchObject({ pings: round, silences: 0 });
      watch.heard();
    }
  });

  it('[K22] is not pinged while it owes no answer, and is watched again from the next call on', () => {
    const { watch, seen, pass } = watched();
    pass(1);
    seen.owes = false;
    pass(20);
    expect(seen).toMatchObject({ pings: 0, silences: 0 });
    seen.owes = true;
    watch.expect();
    pass(1);
    expect(seen.pings).toBe(0);
    pass(1);
    expect(seen.pings).toBe(1);
    watch.close();
    pass(20);
    expect(seen.silences).toBe(0);
  });
});
