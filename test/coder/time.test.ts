// The coder dialect and time: how long a wait blocks, how long a result is kept, how long a start waits for another. The
// host and the dialect share a clock whose hands the test moves.

import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { systemClock } from '../../src/base/clock.ts';
import { coderRoutes } from '../../src/server/coder/routes.ts';
import { openDoor, PREFIX, type CoderClient } from '../support/coder-client.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { inProcess, temporaryFolder } from '../support/hosts.ts';
import { turnsUntil } from '../support/recorder.ts';

const MINUTE = 60_000;

async function atRest(host: HostApi, id: string): Promise<void> {
  for (const kind of ['closed', 'settled'] as const)
    await host.wait('*', { waits: [{ id, for: [{ kind }] }] });
}

async function overFakeClock(): Promise<{ clock: FakeClock; host: HostApi; client: CoderClient }> {
  const clock = new FakeClock();
  const host = await inProcess({ clock });
  const { client } = await openDoor(coderRoutes({ host, clock }));
  return { clock, host, client };
}

it('[W20] check 97: without a key a result is kept 5 minutes after its end, with one 60, by the clock and not by a list', async () => {
  const { clock, host, client } = await overFakeClock();
  const chat = client.with({ 'coder-chat-id': randomUUID() });
  const body = { command: 'echo kept', idempotency_key: 'k' };
  const [plain, keyed] = [await chat.start('echo kept'), await chat.start(body)];
  for (const id of [plain, keyed])
    await host.wait('*', { waits: [{ id, for: [{ kind: 'closed' }] }] });
  for (const id of [plain, keyed]) {
    // Settling is looked for every 20 ms where nobody tells it.
    while (!(await host.get('*', { id })).settled) {
      clock.advance(20);
      await nextTurn();
    }
  }
  const { closedAtMs = 0 } = await host.get('*', { id: plain });
  const { closedAtMs: keyedClosedAtMs = 0 } = await host.get('*', { id: keyed });
  const status = async (id: string): Promise<number> =>
    (await chat.call('GET', `/${id}/output`)).status;
  clock.advance(closedAtMs + 5 * MINUTE - 1 - clock.wallMs());
  for (let n = 0; n < 3; n += 1) await client.list();
  expect([await status(plain), await status(keyed)]).toEqual([200, 200]);
  clock.advance(1);
  expect([await status(plain), await status(keyed)]).toEqual([404, 200]);
  clock.advance(keyedClosedAtMs + 60 * MINUTE - 1 - clock.wallMs());
  expect((await chat.call('POST', '/start', body)).body).toMatchObject({
    id: keyed,
    attached: true,
  });
  clock.advance(1);
  expect(await status(keyed)).toBe(404);
  const again = await chat.call('POST', '/start', body);
  expect(again.body).toMatchObject({ started: true });
  expect(again.body['id']).not.toBe(keyed);
});

it('[W8] a wait ends after 5 minutes with what there is, and the process goes on', async () => {
  const { clock, host, client } = await overFakeClock();
  const id = await client.start('echo so far; exec sleep 300');
  await host.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'far' }] }] });
  let answered = false;
  const waiting = client.wait(id).finally(() => {
    answered = true;
  });
  while ((await host.health('*', {})).parkedWaits !== 1) await nextTurn();
  clock.advance(5 * MINUTE - 1);
  await client.output(id);
  expect(answered).toBe(false);
  clock.advance(1);
  expect(await waiting).toMatchObject({ running: true, output: 'so far\n' });
  expect(await client.output(id)).toMatchObject({ running: true });
});

it('[W8] check 48: no time limit of the server cuts a wait, only senders who are slow', async () => {
  const host = await inProcess();
  const patience = { headers: 800, request: 1000, idle: 800, check: 10 };
  const { client } = await openDoor(coderRoutes({ host, clock: systemClock }), { patience });
  const id = await client.start('sleep 2; echo done');
  expect(await client.wait(id)).toMatchObject({ running: false, output: 'done\n' });
  await atRest(host, id);
});

it('[W10] the last words of what the shell left behind are waited for, a tenth of a second and no longer', async () => {
  const { clock, host, client } = await overFakeClock();
  const fifo = join(temporaryFolder(), 'fifo');
  const exited = async (id: string): Promise<unknown> =>
    host.wait('*', { waits: [{ id, for: [{ kind: 'exit' }] }] });
  const script = `mkfifo ${fifo}; (read _ < ${fifo}; echo late) & echo early`;
  const prompt = await client.start(script);
  const answer = client.wait(prompt);
  await exited(prompt);
  writeFileSync(fifo, 'go\n');
  expect(await answer).toMatchObject({ running: false, output: 'early\nlate\n', exit_code: 0 });
  rmSync(fifo);
  const slow = await client.start(script);
  await exited(slow);
  const early = client.wait(slow);
  clock.advance(100);
  expect(await early).toMatchObject({
    running: false,
    output: 'early\n',
    exit_code: 0,
    streams_open: true,
  });
  writeFileSync(fifo, 'go\n');
  await host.wait('*', { waits: [{ id: slow, for: [{ kind: 'closed' }] }] });
  expect((await client.output(slow)).output).toBe('early\nlate\n');
});

it('[W16] check 91: a client that waits for a stuck start gets an error, and the start still succeeds', async () => {
  const clock = new FakeClock();
  const host = await inProcess();
  let letGo = (): void => undefined;
  const stuck = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let asked = 0;
  const slow: HostApi = new Proxy(host, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      if (name !== 'start') return method.bind(target);
      return async (...args: unknown[]) => {
        asked += 1;
        await stuck;
        return method.apply(target, args);
      };
    },
  });
  const { client } = await openDoor(coderRoutes({ host: slow, clock }));
  const body = { command: 'true', idempotency_key: 'k' };
  const first = client.send('POST', `${PREFIX}/start`, body);
  const giveUp = new AbortController();
  const second = client
    .send('POST', `${PREFIX}/start`, body, giveUp.signal)
    .catch(() => 'disconnected');
  await turnsUntil(() => asked === 2);
  giveUp.abort();
  expect(await second).toBe('disconnected');
  clock.advance(15_000);
  const { status, text } = await first;
  expect([status, JSON.parse(text)]).toEqual([
    409,
    {
      message: 'Timed out waiting for the concurrent start that holds this idempotency key.',
      code: 'start_pending',
    },
  ]);
  const kill = { idempotency_key: 'k', signal: 'interrupt' };
  expect(await client.call('POST', '/signal-by-idempotency-key', kill)).toEqual({
    status: 409,
    body: {
      message: 'The start holding this idempotency key has not spawned its process yet.',
      code: 'start_pending',
    },
  });
  letGo();
  const again = await client.call<{ id: string }>('POST', '/start', body);
  expect(again.body).toMatchObject({ attached: true, idempotency_key: 'k' });
  expect((await client.list()).map(({ id }) => id)).toEqual([again.body.id]);
  await client.wait(again.body.id);
});
