// Shared links: one process, read-only, for a while; everything else is refused.
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedOperations } from '../../src/server/dashboard/shared-operations.ts';
import { PageSessions } from '../../src/server/dashboard/page-sessions.ts';
import { nativeOperations, type NativeOperation } from '../../src/server/native/operations.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { Place } from '../support/command-line.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';

describe('a shared link', () => {
  let served: Served;
  let client: NativeClient;
  let shared: string;
  let other: string;
  let token: string;
  let session: string;
  beforeAll(async () => {
    served = await serve();
    client = NativeClient.of(served);
    const argv = ['/bin/sh', '-c', 'echo shown; exec cat'];
    const { json } = await client.post('/v1/terminals', { argv });
    shared = (json as { process: { id: string } }).process.id;
    await client.post(`/v1/processes/${shared}/wait`, { for: [{ kind: 'text', text: 'shown' }] });
    other = await client.run({ command: 'echo hidden' });
    const made = await client.post(`/v1/processes/${shared}/share`, { forMs: 3_600_000 });
    const answer = made.json as { token: string; session: { id: string } };
    [token, session] = [answer.token, answer.session.id];
  });
  afterAll(() => served.stop());

  const guest = () =>
    new NativeClient(
      { host: '127.0.0.1', port: served.port },
      { authorization: `Bearer ${token}` },
    );

  it('[DB22] reads its process, and no other one', async () => {
    for (const rest of [
      '',
      '/text',
      '/bytes',
      '/events',
      '/timeline',
      '/at?offset=0',
      '/search?pattern=s',
    ]) {
      expect([rest, (await guest().get(`/v1/processes/${shared}${rest}`)).status]).toEqual([
        rest,
        200,
      ]);
      expect([rest, (await guest().get(`/v1/processes/${other}${rest}`)).status]).toEqual([
        rest,
        403,
      ]);
    }
    expect((await guest().get(`/v1/terminals/${shared}/snapshot`)).status).toBe(200);
    expect((await guest().get(`/v1/terminals/${shared}/runs`)).status).toBe(200);
  });

  it('[DB22] is refused by every other route, of every dialect', async () => {
    const rows = Object.entries<NativeOperation>(nativeOperations).filter(
      ([name, { anonymous }]) => !sharedOperations.has(name) && !anonymous,
    );
    for (const [name, { method, path }] of rows) {
      const at = path.replace(':id', shared).replace(/:\w+/, 'x');
      const asked =
        method === 'GET'
          ? guest().get(at)
          : method === 'POST'
            ? guest().post(at, {})
            : guest().delete(at);
      expect([name, (await asked).status]).toEqual([name, 403]);
    }
    for (const path of ['/api/v0/processes/start', '/mcp'])
      expect([path, (await guest().post(path, {})).status]).toEqual([path, 403]);
  });

  it('[DB22] follows its process over the WebSocket, sees no other in the list, and can neither type nor hold the keyboard', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${served.port}/v1/watch`);
    onCleanup(() => socket.terminate());
    const messages: Record<string, unknown>[] = [];
    let wake = (): void => undefined;
    socket.on('message', (data: Buffer, binary) => {
      messages.push(
        binary ? { type: 'bytes' } : (JSON.parse(data.toString()) as Record<string, unknown>),
      );
      wake();
    });
    await once(socket, 'open');
    const say = (message: object): void => socket.send(JSON.stringify(message));
    const until = async (isIt: (message: Record<string, unknown>) => boolean) => {
      for (;;) {
        const found = messages.find(isIt);
        if (found) return found;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    };
    say({ type: 'hello', token });
    expect(await until(({ type }) => type === 'welcome')).toMatchObject({ only: [shared] });
    say({ type: 'list', channel: 1 });
    const rows = (await until(({ type }) => type === 'rows'))['changed'] as { id: string }[];
    expect(rows.map(({ id }) => id)).toEqual([shared]);
    say({ type: 'log', channel: 2, owner: 'api', id: shared, offset: 0 });
    await until(({ type }) => type === 'bytes');
    const target = { owner: 'api', id: shared };
    const refused = [
      { type: 'log', channel: 3, owner: 'api', id: other, offset: 0 },
      { type: 'hold', ask: 1, ...target },
      { type: 'type', ask: 2, ...target, data: 'x' },
      { type: 'resize', ask: 3, ...target, cols: 10, rows: 10 },
      { type: 'completions', channel: 4 },
      { type: 'attention', channel: 5 },
    ];
    for (const message of refused) {
      messages.length = 0;
      say(message);
      const problem = await until(({ type }) => type === 'problem');
      expect(problem).toMatchObject({ error: { code: 'forbidden' } });
    }
  });

  it('[DB22] is listed with what it shows, and ends when it is revoked', async () => {
    const { json } = await client.get('/v1/sessions');
    const sessions = (json as { sessions: { id: string; only?: string[] }[] }).sessions;
    expect(sessions).toMatchObject([{ id: session, only: [shared] }]);
    await client.delete(`/v1/sessions/${session}`);
    expect((await guest().get(`/v1/processes/${shared}`)).status).toBe(401);
  });

  it('[DB22] ends at its time, however often it is used', () => {
    const clock = new FakeClock();
    const pages = new PageSessions(temporaryFolder(), clock);
    const made = pages.share('api', 'p1', 7_200_000);
    expect(pages.bearer(made.token)).toMatchObject({ owner: 'api', only: ['p1'] });
    clock.advance(7_100_000);
    expect(pages.bearer(made.token)).toBeDefined();
    clock.advance(100_001);
    expect(pages.bearer(made.token)).toBeUndefined();
  });
});

it('[DB22] holdfast share prints a link that leads to the process', async () => {
  const place = new Place();
  onCleanup(() => place.close());
  const id = await place.background('--name', 'web', 'sleep 1000');
  const { stdout, code } = await place.run('share', 'web', '--for', '15m');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    new RegExp(`^http://\\S+/#share=hfp_[\\w-]{43}/p/cli/${id}\nWorks until `),
  );
});
