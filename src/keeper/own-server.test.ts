import { expect, test } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import type { Child, ChildListener } from '../host/child/child.ts';
import { OwnServer } from './own-server.ts';

const HOUR_MS = 3_600_000;

/** A home whose server the keeper has not started, and the servers that it has started since. */
function memberHome(): {
  readonly server: OwnServer;
  readonly clock: FakeClock;
  readonly started: ChildListener[];
  readonly state: { isMember: boolean; hasDied: boolean };
} {
  const clock = new FakeClock();
  const started: ChildListener[] = [];
  const state = { isMember: true, hasDied: true };
  const server = new OwnServer({
    start: async () => {
      const child = { pid: 0, listen: (listener: ChildListener) => void started.push(listener) };
      return child as unknown as Child;
    },
    home: '/nowhere',
    env: {},
    clock,
    report: () => undefined,
    isMember: () => state.isMember,
    hasDied: () => state.hasDied,
  });
  return { server, clock, started, state };
}

const turns = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('[FL32] the dead server of a member is started again, once, after a pause that grows', async () => {
  const { server, clock, started } = memberHome();
  server.look();
  server.look();
  expect(clock.pending).toBe(1);
  clock.advance(2000);
  await turns();
  expect(started).toHaveLength(1);
  for (let failures = 0; failures < 5; failures += 1) {
    started.at(-1)?.exited({ code: 1 });
    await turns();
    clock.advance(HOUR_MS);
    await turns();
  }
  expect(started).toHaveLength(6);
  started.at(-1)?.exited({ code: 1 });
  clock.advance(2000);
  await turns();
  expect(started).toHaveLength(6);
});

test('[FL32] a server that was ended, that of no member, and that of a keeper that ends stay as they are', async () => {
  const { server, clock, started, state } = memberHome();
  state.isMember = false;
  server.look();
  expect(clock.pending).toBe(0);
  state.isMember = true;
  state.hasDied = false;
  server.look();
  clock.advance(HOUR_MS);
  state.hasDied = true;
  server.look();
  state.isMember = false;
  clock.advance(HOUR_MS);
  state.isMember = true;
  server.look();
  server.retire();
  server.look();
  clock.advance(HOUR_MS);
  await turns();
  expect(started).toHaveLength(0);
});
