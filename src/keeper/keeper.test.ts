import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';

import { FakeClock } from '../../test/support/fake-clock.ts';
import {
  inProcess,
  onCleanup,
  outputText,
  OWNER,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../../test/support/hosts.ts';
import { requirePosix, turnsUntil } from '../../test/support/recorder.ts';
import type { Host } from '../host/host.ts';
import { Keeper } from './keeper.ts';
import { openLink } from './link.ts';

const IDLE_MS = 60_000;

function keeperOver(host: Host, clock: FakeClock, left = (): void => undefined): Keeper {
  return new Keeper({
    host,
    clock,
    version: 'test',
    idleMs: IDLE_MS,
    server: {
      start: () => Promise.reject(new Error('none here')),
      is: () => false,
      isSupervised: false,
      look: () => undefined,
      retire: () => undefined,
      end: async () => undefined,
    },
    stopping: () => undefined,
    released: () => Promise.resolve(),
    left,
  });
}

test('[K16] a keeper does not leave as idle while a daemon lives, and leaves when it has ended', async () => {
  onCleanup(() => requirePosix().setSubreaper(false));
  const host = await inProcess({ adopts: true });
  const clock = new FakeClock();
  let hasLeft = false;
  const keeper = keeperOver(host, clock, () => (hasLeft = true));
  const command = 'setsid sleep 1000 >/dev/null 2>&1 & echo $!';
  const id = await startProcess(host, { command });
  await waitFor(host, id, { kind: 'closed' });
  const daemon = Number(await outputText(host, id));
  await keeper.listen(join(temporaryFolder(), 'socket'));
  for (let hour = 0; hour < 3; hour += 1) {
    clock.advance(IDLE_MS);
    await turnsUntil(() => hasLeft || clock.pending > 0);
    expect(hasLeft).toBe(false);
  }
  expect(await host.get(OWNER, { id })).toMatchObject({ state: 'closed', settled: false });
  process.kill(daemon, 'SIGKILL');
  await waitFor(host, id, { kind: 'settled' });
  clock.advance(IDLE_MS);
  await turnsUntil(() => hasLeft);
});

test('[K87] a caller that has left before it was let in is not looked for, and costs the others nothing', async () => {
  const host = await inProcess();
  const path = join(temporaryFolder(), 'socket');
  await keeperOver(host, new FakeClock()).listen(path);
  const looked = vi.spyOn(host.programs, 'originOf');
  // The kernel connects at once: they wait to be let in when they leave.
  for (let caller = 0; caller < 100; caller += 1) connect(path).destroy();
  const link = await openLink(path);
  expect(link.keeper).toMatchObject({ version: 'test' });
  expect(looked).toHaveBeenCalledTimes(1);
  await link.close();
});
