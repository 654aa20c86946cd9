// MCP's revision of 2026 at /mcp, beside the older ones: requests without sessions, and tasks.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { Place, type Running } from '../support/command-line.ts';
import { gate, onCleanup } from '../support/hosts.ts';
import {
  asker,
  metaOf,
  serveAt,
  settleBy,
  TASKS,
  VERSION,
  type Answer,
  type Asking,
} from '../support/modern-mcp.ts';
import { portToKeep } from '../support/ports.ts';
import { sized } from '../support/slow.ts';

let served: Served;

beforeAll(async () => {
  served = await serve({ heartbeatMs: 100 });
});

afterAll(() => served.stop());

/** The same over the standard streams of a program. */
function stdioAsker({ child }: Running): ReturnType<typeof asker> {
  const waiting = new Map<number, (answer: Omit<Answer, 'status' | 'text'>) => void>();
  let last = 0;
  createInterface({ input: child.stdout as Readable }).on('line', (line) => {
    const message = JSON.parse(line) as { id: number } & Answer;
    waiting.get(message.id)?.(message);
  });
  return async (method, params, asking) => {
    last += 1;
    const id = last;
    const message = {
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, _meta: metaOf(asking ?? {}) },
    };
    const answer = new Promise<Omit<Answer, 'status' | 'text'>>((resolve) =>
      waiting.set(id, resolve),
    );
    child.stdin?.write(`${JSON.stringify(message)}\n`);
    return { status: 200, text: '', ...(await answer) };
  };
}

function ask(...args: Parameters<ReturnType<typeof asker>>): Promise<Answer> {
  return asker(served.server.url, served.token)(...args);
}

function execute(input: Record<string, unknown>, asking?: Asking): Promise<Answer> {
  return ask('tools/call', { name: 'execute', arguments: input }, asking);
}

function outputOf({ result }: Answer): Record<string, unknown> {
  return (result as { structuredContent?: Record<string, unknown> }).structuredContent ?? {};
}

function nth(answers: readonly Answer[], at: number): Answer {
  const answer = answers[at];
  if (!answer) throw new Error(`there are only ${answers.length} answers`);
  return answer;
}

const settle = (taskId: string, get = ask): Promise<Record<string, never>> => settleBy(get, taskId);

describe('both revisions at one address', () => {
  it('[M40] server/discover names the versions, the capabilities and tasks', async () => {
    const { status, result } = await ask('server/discover');
    expect(status).toBe(200);
    expect(result).toMatchObject({
      supportedVersions: expect.arrayContaining([VERSION]) as string[],
      capabilities: { tools: {}, resources: {}, extensions: { [TASKS]: {} } },
    });
  });

  it('[M40] the official client connects by itself, pinned to the new revision, and as before', async () => {
    for (const [mode, era] of [
      ['auto', 'modern'],
      [{ pin: VERSION }, 'modern'],
      ['legacy', 'legacy'],
    ] as const) {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
      const headers = { Authorization: `Bearer ${served.token}` };
      const url = new URL('/mcp', served.server.url);
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
      onCleanup(() => client.close());
      expect([mode, client.getProtocolEra()]).toEqual([mode, era]);
      const answer = await client.callTool({ name: 'execute', arguments: { command: 'echo hi' } });
      expect(answer.structuredContent).toMatchObject({ output: 'hi\n', exit_code: 0 });
    }
  });

  it('[M41] refuses without a token, from a page, and with headers that contradict the body; nothing is started', async () => {
    const before = (await served.server.host.list('*', {})).total;
    const input = { name: 'execute', arguments: { command: 'true' } };
    const headers = [
      { Authorization: 'Bearer wrong' },
      { Origin: 'http://evil.example' },
      { 'Mcp-Method': 'tools/list' },
      { 'Mcp-Name': 'process_list' },
      { 'MCP-Protocol-Version': '2025-11-25' },
    ];
    const answers = await Promise.all(
      headers.map((each) => ask('tools/call', input, { headers: each })),
    );
    expect(answers.map(({ status }) => status)).toEqual([401, 403, 400, 400, 400]);
    expect(answers.slice(2).map(({ error }) => error.code)).toEqual([-32020, -32020, -32020]);
    const unknown = { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
    const newer = await ask(
      'tools/list',
      {},
      {
        headers: { 'MCP-Protocol-Version': '2099-01-01' },
        meta: unknown,
      },
    );
    expect([newer.status, newer.error.code]).toEqual([400, -32022]);
    expect(newer.error.data).toMatchObject({
      supported: expect.arrayContaining([VERSION]) as never,
    });
    expect((await served.server.host.list('*', {})).total).toBe(before);
  });

  it('[M42] two requests with the same number are two processes; the same call id is one', async () => {
    const [one, two] = await Promise.all(
      ['one', 'two'].map((word) => execute({ command: `echo ${word}` })),
    );
    expect([one, two].map((answer) => answer && outputOf(answer)['output'])).toEqual([
      'one\n',
      'two\n',
    ]);
    const meta = { 'test.example/toolCallId': 'call-1' };
    const first = await execute({ command: 'echo $$' }, { meta });
    const again = await execute({ command: 'echo $$' }, { meta });
    expect(outputOf(again)['output']).toBe(outputOf(first)['output']);
  });

  it('[M43] what a caller has read is kept over requests, apart for each token', async () => {
    const { wait, open } = gate();
    const started = await execute({ command: `echo a; ${wait}`, run_in_background: true });
    const id = outputOf(started)['background_process_id'];
    await served.server.host.wait('*', {
      waits: [{ id: String(id), for: [{ kind: 'text', text: 'a' }] }],
    });
    const read = async (token: string): Promise<unknown> => {
      const input = {
        name: 'process_output',
        arguments: { process_id: id, new_only: true, wait_timeout: '0s' },
      };
      const answer = await asker(served.server.url, token)('tools/call', input);
      return outputOf(answer)['output'];
    };
    const { token } = served.tokens.createAdmin();
    expect([await read(served.token), await read(served.token), await read(token)]).toEqual([
      'a\n',
      undefined,
      'a\n',
    ]);
    open();
  });

  it('[M44] the list of tools is always the same and may be cached', async () => {
    const [one, two] = [await ask('tools/list'), await ask('tools/list')];
    expect(one.text).toBe(two.text);
    expect(one.result).toMatchObject({ ttlMs: 3_600_000, cacheScope: 'public' });
  });
});

describe('a task', () => {
  const LEFT = 'setsid sleep 600 & echo $!; exec sleep 600';
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-tasks-'));
  const fifo = join(folder, 'fifo');
  let plain: Answer;
  let tasks: readonly Answer[];

  // A command becomes a task after two seconds: all of them at once.
  beforeAll(async () => {
    const wait = `mkfifo ${fifo} 2>/dev/null; read _ < ${fifo}`;
    const begun = [
      [`${wait}; exit 3`, '60s'],
      ['exec sleep 600', '60s'],
      // Children are signalled before their parent: a shell that waits for them could exit by itself first.
      [LEFT, '60s'],
      ['exec sleep 600', '4s'],
      ['trap "echo bye; exit 3" TERM; while :; do sleep 0.05; done', '60s'],
    ].map(([command, timeout]) => execute({ command, timeout }, { tasks: true }));
    plain = await execute({ command: 'exec sleep 600', timeout: '2500ms' });
    tasks = await Promise.all(begun);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('[M50] is made only of a long execute whose request knows tasks', async () => {
    const short = await execute({ command: 'true' }, { tasks: true });
    expect(short.result['resultType']).toBe('complete');
    const { result } = nth(tasks, 0);
    expect(result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null });
    expect(result['createdAt']).toMatch(/^\d{4}-.*Z$/);
    expect(Object.keys(result)).not.toEqual(expect.arrayContaining(['task', 'result', 'error']));
    expect(plain.result['resultType']).toBe('complete');
    const { taskId = '' } = result;
    expect((await ask('tasks/get', { taskId }, { tasks: true })).result['status']).toBe('working');
    writeFileSync(fifo, 'go\n');
    const ended = await settle(taskId);
    expect(ended).toMatchObject({
      status: 'completed',
      // Clients of tasks refuse a result without its type.
      result: { resultType: 'complete', structuredContent: { exit_code: 3, success: false } },
    });
    expect(await settle(taskId)).toEqual(ended);
    expect((await ask('tasks/cancel', { taskId }, { tasks: true })).result).toMatchObject({
      resultType: 'complete',
    });
    expect((await settle(taskId))['status']).toBe('completed');
  });

  it('[M51] is found by nobody else, and not by a changed id', async () => {
    const { taskId = '' } = nth(tasks, 1).result;
    const { token } = served.tokens.create('bob');
    const other = asker(served.server.url, token);
    const changed = `${taskId.slice(0, 8)}${taskId[8] === 'A' ? 'B' : 'A'}${taskId.slice(9)}`;
    const ids = ['', 'garbage', changed, `${taskId}.x`, `${taskId}=`];
    for (const each of ids)
      expect((await ask('tasks/get', { taskId: each }, { tasks: true })).error.code).toBe(-32602);
    expect((await other('tasks/get', { taskId }, { tasks: true })).error.code).toBe(-32602);
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { error } = await ask(method, { taskId });
      expect([error.code, error.data]).toEqual([
        -32021,
        { requiredCapabilities: { extensions: { [TASKS]: {} } } },
      ]);
    }
    for (const method of ['tasks/result', 'tasks/list'])
      expect((await ask(method, { taskId }, { tasks: true })).error.code).toBe(-32601);
    await ask('tasks/cancel', { taskId }, { tasks: true });
  });

  it('[M52] that is cancelled ends everything that its command started', async () => {
    const { taskId = '' } = nth(tasks, 2).result;
    const { processes } = await served.server.host.list('*', { state: 'running' });
    const process = processes.find((each) => each.command === LEFT);
    const { text } = await served.server.host.text('*', { id: process?.id ?? '' });
    await ask('tasks/cancel', { taskId }, { tasks: true });
    expect((await settle(taskId))['status']).toBe('cancelled');
    expect([process?.pid ?? 0, Number(text.trim())].map((pid) => isAlive(readEntry(pid)))).toEqual([
      false,
      false,
    ]);
    const acknowledged = await ask(
      'tasks/update',
      { taskId, inputResponses: { a: 1 } },
      { tasks: true },
    );
    expect(acknowledged.result).toMatchObject({ resultType: 'complete' });
  });

  it('[M52] that is cancelled is cancelled although its command handles the signal and exits as it likes', async () => {
    const { taskId = '' } = nth(tasks, 4).result;
    await ask('tasks/cancel', { taskId }, { tasks: true });
    expect((await settle(taskId))['status']).toBe('cancelled');
  });

  it('[M53] whose timeout passes is completed, and its process goes on', async () => {
    const { result } = nth(tasks, 3);
    const ended = await settle(result.taskId ?? '');
    const { structuredContent: answer } = ended['result'] as unknown as {
      structuredContent: never;
    };
    expect(answer).toMatchObject({ running: true, success: false });
    const id = String(answer['background_process_id']);
    expect((await served.server.host.get('*', { id })).state).toBe('running');
    await served.server.host.remove('*', { id, force: true });
    const { error } = await ask('tasks/get', { taskId: result.taskId ?? '' }, { tasks: true });
    expect([error.code, error.message.includes('expired')]).toEqual([-32602, true]);
  });

  it('[M55] is made, answered and cancelled over stdio, too', async () => {
    const place = new Place();
    const server = place.start('mcp');
    const over = stdioAsker(server);
    const { wait, open } = gate();
    const execute = { name: 'execute', arguments: { command: `${wait}; exit 3`, timeout: '60s' } };
    const left = { name: 'execute', arguments: { command: LEFT, timeout: '60s' } };
    const [one, two, plain] = await Promise.all([
      over('tools/call', execute, { tasks: true }),
      over('tools/call', left, { tasks: true }),
      over('tools/call', { name: 'execute', arguments: { command: 'true' } }, { tasks: true }),
    ]);
    expect([one, two, plain].map(({ result }) => result['resultType'])).toEqual([
      'task',
      'task',
      'complete',
    ]);
    open();
    expect(await settle(one.result.taskId ?? '', over)).toMatchObject({
      status: 'completed',
      result: { structuredContent: { exit_code: 3, success: false } },
    });
    const taskId = two.result.taskId ?? '';
    await over('tasks/cancel', { taskId }, { tasks: true });
    expect((await settle(taskId, over))['status']).toBe('cancelled');
    server.child.stdin?.end();
    await server.ended;
    await place.close();
  });

  it('[M54] is answered by the next server when this one was killed', async () => {
    const place = new Place();
    const port = await portToKeep();
    const begin = async () => {
      const { server, url, token } = await serveAt(place, port);
      return { server, ask: asker(url, token) };
    };
    const first = await begin();
    const gates = Array.from({ length: sized(5, 20) }, () => gate());
    const begun = await Promise.all(
      gates.map(({ wait }, at) => {
        const input = { command: `${wait}; exit ${at}`, timeout: '60s' };
        return first.ask('tools/call', { name: 'execute', arguments: input }, { tasks: true });
      }),
    );
    first.server.child.kill('SIGKILL');
    await once(first.server.child, 'exit');
    const second = await begin();
    for (const { open } of gates) open();
    const ended = await Promise.all(
      begun.map(({ result }) => settle(result.taskId ?? '', second.ask)),
    );
    const again = begun.map(({ result }) => settle(result.taskId ?? '', second.ask));
    expect(await Promise.all(again)).toEqual(ended);
    const codes = ended.map(
      ({ result }) =>
        (result as unknown as { structuredContent: Record<string, unknown> }).structuredContent[
          'exit_code'
        ],
    );
    expect(codes).toEqual(gates.map((_, at) => at));
    await place.close();
    await second.server.ended;
  });
});
