// Tasks of MCP's revision of 2026 that take long, that are many, and whose keeper ends.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { onCleanup, OWNER } from '../support/hosts.ts';
import {
  asker,
  handlerOnFakeClock,
  settleBy,
  structured,
  type Ask,
} from '../support/modern-mcp.ts';
import { isSlowRun, sized } from '../support/slow.ts';

/** A gateway has no keeper of its own. */
const isGateway = process.env['FLEET'] !== undefined;
const URL_OF_NOBODY = 'http://localhost';

async function begin(ask: Ask, command: string, input: object = {}): Promise<string> {
  const params = { name: 'execute', arguments: { command, timeout: '20m', ...input } };
  const { result } = await ask('tools/call', params, { tasks: true });
  expect(result).toMatchObject({ resultType: 'task', status: 'working' });
  return result.taskId ?? '';
}

describe.skipIf(isGateway)('a task whose keeper ends', () => {
  it('[M56] is completed with what is true then: lost if it was killed, ended if it was shut down', async () => {
    const places = await Promise.all([serve(), serve()]);
    for (const each of places) onCleanup(() => each.stop());
    const [killed, ended] = places;
    const asks = places.map(({ server, token }) => asker(server.url, token));
    const ids = await Promise.all(asks.map((ask) => begin(ask, 'echo so far; exec sleep 600')));
    process.kill(killed.server.keeperPid, 'SIGKILL');
    const link = await connectKeeper({ home: ended.home, env: {}, startIfMissing: false });
    await link.stop();
    const answers = await Promise.all(asks.map((ask, at) => settleBy(ask, ids[at] ?? '')));
    expect(answers.map(({ status }) => status)).toEqual(['completed', 'completed']);
    const [lost, stopped] = answers.map(({ result }) => structured(result));
    const output = 'so far\n';
    const unknown = expect.stringMatching(/^how it ended is unknown/) as string;
    expect(lost).toMatchObject({ success: false, running: false, output, error: unknown });
    expect(lost).not.toHaveProperty('exit_code');
    expect(stopped).toMatchObject({ success: false, running: false, output, signal: 'SIGTERM' });
    for (const [at, ask] of asks.entries())
      expect(await settleBy(ask, ids[at] ?? '')).toEqual(answers[at]);
  });
});

describe('a long task', () => {
  it('[M57] is not cut: it tells when output came and not what, until its end', async () => {
    const { clock, host, send, pass } = await handlerOnFakeClock();
    const ask = asker(URL_OF_NOBODY, 'none', send);
    const get = async (taskId: string): Promise<Record<string, never>> => {
      const asked = ask('tasks/get', { taskId }, { tasks: true });
      await pass(500);
      return (await asked).result;
    };
    const begun = begin(ask, 'cat; exit 3', { stdin: true });
    await pass(2000);
    const taskId = await begun;
    const { processes } = await host.list(OWNER, {});
    const id = processes[0]?.id ?? '';
    const first = await get(taskId);
    clock.advance(10 * 60_000);
    await host.write(OWNER, { id, data: Buffer.from('secret\n') });
    await host.wait(OWNER, { waits: [{ id, for: [{ kind: 'text', text: 'secret' }] }] });
    const later = await get(taskId);
    expect(later).toMatchObject({
      status: 'working',
      createdAt: first['createdAt'],
      ttlMs: null,
      pollIntervalMs: 5000,
      statusMessage: 'running for 10m3s, 7 bytes printed, last now',
    });
    const movedMs = Date.parse(later['lastUpdatedAt'] ?? '') - Date.parse(later['createdAt'] ?? '');
    expect(movedMs).toBe(10 * 60_000 + 2500);
    const held = ask('tasks/get', { taskId }, { tasks: true });
    await host.write(OWNER, { id, data: Buffer.alloc(0), eof: true });
    // At once, for no time passes here.
    const ended = (await held).result;
    expect(ended).toMatchObject({ status: 'completed', createdAt: first['createdAt'] });
    expect(structured(ended['result'])).toMatchObject({ exit_code: 3, output: 'secret\n' });
  });
});

describe.skipIf(isGateway)('many tasks', () => {
  let served: Served;

  beforeAll(async () => {
    served = await serve();
  });
  afterAll(() => served.stop());

  it(`[M58] ${isSlowRun ? 'a thousand' : 'some'} cost one wait of the keeper each, and nothing when they have ended`, async () => {
    const ask = asker(served.server.url, served.token);
    const { host } = served.server;
    const waits = async (): Promise<number> => (await host.health('*', {})).parkedWaits;
    const before = await waits();
    const ids = await Promise.all(
      Array.from({ length: sized(20, 1000) }, () => begin(ask, 'exec sleep 600')),
    );
    expect(new Set(ids).size).toBe(ids.length);
    const working = await Promise.all(
      ids.map((taskId) => ask('tasks/get', { taskId }, { tasks: true })),
    );
    expect(new Set(working.map(({ result }) => result['status']))).toEqual(new Set(['working']));
    expect((await waits()) - before).toBe(ids.length);
    await Promise.all(ids.map((taskId) => ask('tasks/cancel', { taskId }, { tasks: true })));
    const ended = await Promise.all(ids.map((taskId) => settleBy(ask, taskId)));
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['cancelled']));
    expect((await waits()) - before).toBe(0);
  });
});
