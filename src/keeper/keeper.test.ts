import { join } from 'node:path';
import { expect, test } from 'vitest';

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
import { Keeper } from './keeper.ts';

const IDLE_MS = 60_000;

test('[K16] a keeper does not leave as idle while a daemon lives, and leaves when it has ended', async () => {
  onCleanup(() => requirePosix().setSubreaper(false));
  const host = await inProcess({ adopts: true });
  const clock = new FakeClock();
  let hasLeft = false;
  const keeper = new Keeper({
    host,
    clock,
    version: 'test',
    idleMs: IDLE_MS,
    server: { start: () => Promise.reject(new Error('none here')), is: () => false },
    stopping: () => undefined,
    released: () => undefined,
    left: () => (hasLeft = true),
  });
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
