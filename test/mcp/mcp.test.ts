// MCP as the official client speaks it: over stdio with `holdfast mcp`, and over HTTP at /mcp.

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mcpClients } from '../../src/cli/mcp-config.ts';
import { connect } from '../../src/client/connect.ts';
import { runningServer } from '../../src/server/server-lock.ts';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { toolDefinitions } from '../../src/tools/definitions.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { gate, onCleanup, program, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import {
  endServer,
  homeForStdio,
  negotiatedOverStdio,
  overHttp,
  overStdio,
  type Connected,
} from '../support/mcp-clients.ts';
import { portToKeep } from '../support/ports.ts';
import { turnsUntil } from '../support/recorder.ts';

interface Result extends Record<string, unknown> {
  readonly success: boolean;
  readonly output?: string;
  readonly background_process_id?: string;
}

async function call(
  { client }: Connected,
  name: string,
  input: Record<string, unknown>,
  options: Parameters<Connected['client']['callTool']>[1] & { meta?: Record<string, unknown> } = {},
): Promise<Result> {
  const { meta, ...rest } = options;
  const params = { name, arguments: input, ...(meta && { _meta: meta }) };
  const { structuredContent, content, isError } = await client.callTool(params, rest);
  const [first] = content as unknown as [{ text: string }];
  if (isError === true) throw new Error(first.text);
  expect(JSON.parse(first.text)).toEqual(structuredContent);
  return structuredContent as Result;
}

const uriOf = (id: string | undefined): string => `holdfast://process/${id}/output`;
const runs = promisify(execFile);
let served: Served;
/** Of the tests over stdio: the first of them has its server started. */
let home: string;

beforeAll(async () => {
  served = await serve({ heartbeatMs: 100 });
  home = mkdtempSync(join(tmpdir(), 'holdfast-mcp-test-'));
});

afterAll(async () => {
  await endServer(home);
  await stopKeeper(home);
  rmSync(home, { recursive: true, force: true });
  await served.stop();
});

async function stdio(): Promise<Connected> {
  return overStdio(home, '--progress', '100ms');
}

async function http(): Promise<Connected> {
  return overHttp(served.server.url, { authorization: `Bearer ${served.token}` });
}

for (const [name, make] of [
  ['stdio', stdio],
  ['HTTP', http],
] as const) {
  describe(`MCP over ${name}`, () => {
    it('[M1] lists every tool with schemas and hints, and a call answers as its schema says', async () => {
      const connected = await make();
      const { tools } = await connected.client.listTools();
      expect(tools.map((tool) => tool.name)).toEqual(toolDefinitions.map((tool) => tool.name));
      for (const tool of tools) {
        if (tool.name === 'terminal_screenshot') expect(tool.outputSchema).toBeUndefined();
        else expect(tool.outputSchema).toMatchObject({ type: 'object' });
        expect(tool.annotations).toMatchObject({ readOnlyHint: expect.any(Boolean) as boolean });
      }
      expect(tools.find((tool) => tool.name === 'process_signal')?.annotations).toMatchObject({
        readOnlyHint: false,
        destructiveHint: true,
      });
      const answer = await call(connected, 'execute', { command: 'echo hi; exit 3' });
      expect(answer).toMatchObject({ success: false, exit_code: 3, output: 'hi\n' });
      await expect(call(connected, 'execute', {})).rejects.toThrow('command is required');
      await expect(call(connected, 'nothing', {})).rejects.toThrow('There is no tool "nothing"');
    });

    it('[M2] a client that asks for progress gets it while it waits; any other is answered before it times out', async () => {
      const connected = await make();
      // A first call may have to start the server.
      await call(connected, 'process_list', {});
      const seen: number[] = [];
      const hold = gate();
      const onprogress = ({ progress }: { progress: number }): void => {
        if (seen.push(progress) === 3) hold.open();
      };
      const input = { command: `${hold.wait}; echo over`, timeout: '90s' };
      const answer = await call(connected, 'execute', input, { onprogress });
      expect(answer).toMatchObject({ success: true, output: 'over\n' });
      expect(seen.length).toBeGreaterThanOrEqual(3);
      expect([...seen].sort((a, b) => a - b)).toEqual(seen);
    });

    it('[M3] cancelling ends the wait and not the process', async () => {
      const connected = await make();
      const controller = new AbortController();
      const started = connected.next('notifications/resources/list_changed');
      const background = await call(connected, 'execute', { command: 'sleep 1000 &' });
      await started;
      const id = background.background_process_id;
      const waiting = call(
        connected,
        'process_wait',
        { process_ids: [id], wait_timeout: '40s' },
        { signal: controller.signal },
      );
      await call(connected, 'process_list', {});
      controller.abort('enough');
      await expect(waiting).rejects.toThrow(/enough/);
      const now = await call(connected, 'process_output', { process_id: id, wait_timeout: '0s' });
      expect(now).toMatchObject({ running: true });
      await call(connected, 'process_signal', { process_id: id, signal: 'kill' });
    });

    it('[M4] outputs are resources: listed, read, and updated when they grow, until unsubscribed', async () => {
      const connected = await make();
      const { client } = connected;
      const command = 'echo one; read x; echo two; read y; echo three; sleep 1000';
      const background = async (input: Record<string, unknown>): Promise<string> => {
        const changed = connected.next('notifications/resources/list_changed');
        const started = await call(connected, 'execute', input);
        await changed;
        return started.background_process_id ?? '';
      };
      /** Notifications come in their order: behind the one of a start, all before it are here. */
      const updates = async (): Promise<number> => {
        const process_id = await background({ command: 'sleep 1000 &' });
        await call(connected, 'process_signal', { process_id, signal: 'kill' });
        return connected.reported.filter(({ method }) => method.endsWith('updated')).length;
      };
      const id = await background({ command, stdin: true, run_in_background: true });
      const uri = uriOf(id);
      const { resources } = await client.listResources();
      expect(resources.find((each) => each.uri === uri)).toMatchObject({ name: command });
      const { resourceTemplates } = await client.listResourceTemplates();
      expect(resourceTemplates).toMatchObject([{ uriTemplate: uriOf('{id}') }]);
      await call(connected, 'process_wait', { process_ids: [id], text: 'one' });
      expect((await client.readResource({ uri })).contents).toMatchObject([{ text: 'one\n' }]);
      await client.subscribeResource({ uri });
      const updated = connected.next('notifications/resources/updated');
      await call(connected, 'process_write', { process_id: id, text: '\n' });
      expect(await updated).toMatchObject({ uri });
      expect((await client.readResource({ uri })).contents).toMatchObject([{ text: 'one\ntwo\n' }]);
      await client.unsubscribeResource({ uri });
      const before = await updates();
      await call(connected, 'process_write', { process_id: id, text: '\n' });
      await call(connected, 'process_signal', { process_id: id, signal: 'kill' });
      expect(await updates()).toBe(before);
      await expect(client.readResource({ uri: uriOf('nobody') })).rejects.toThrow(/not found/i);
      await expect(client.subscribeResource({ uri: 'file:///etc' })).rejects.toThrow(/not found/i);
    });

    it('[M5] the exit of a background process is notified once', async () => {
      const connected = await make();
      const reported = connected.next('notifications/message');
      const started = await call(connected, 'execute', {
        command: 'read x; exit 7',
        stdin: true,
        timeout: '200ms',
      });
      const id = started.background_process_id;
      await call(connected, 'process_output', { process_id: id, wait_timeout: '0s' });
      await call(connected, 'process_write', { process_id: id, text: '\n' });
      expect(await reported).toMatchObject({
        level: 'warning',
        logger: 'holdfast',
        data: { process_id: id, exit_code: 7, command: 'read x; exit 7' },
      });
      await call(connected, 'process_output', { process_id: id });
      const messages = connected.reported.filter(
        ({ method }) => method === 'notifications/message',
      );
      expect(messages).toHaveLength(1);
    });
  });
}

describe('MCP over HTTP', () => {
  it('[M6] the gate stands before it, and the token decides whose processes are seen', async () => {
    const { url } = served.server;
    await expect(overHttp(url, {})).rejects.toThrow(/token is needed/i);
    const { token } = served.tokens.create('chat:mine');
    const mine = await overHttp(url, { authorization: `Bearer ${token}` });
    const started = await call(mine, 'execute', { command: 'sleep 1000 &' });
    const id = started.background_process_id;
    const admin = await overHttp(url, { authorization: `Bearer ${served.token}` });
    expect(await call(admin, 'process_output', { process_id: id })).toMatchObject({
      success: false,
    });
    const named = await overHttp(url, {
      authorization: `Bearer ${served.token}`,
      'holdfast-owner': 'chat:mine',
    });
    const seen = await call(named, 'process_output', { process_id: id, wait_timeout: '0s' });
    expect(seen).toMatchObject({ running: true });
    const status = await new Promise<number>((resolve, reject) => {
      const headers = { host: 'evil.example', authorization: `Bearer ${served.token}` };
      request(`${url}/mcp`, { method: 'POST', headers }, (response) =>
        resolve(response.resume().statusCode ?? 0),
      )
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });

  it('[M6] a page may speak to it only from an origin that was named, or from the server itself', async () => {
    const open = await serve({ openToAll: true, origins: ['http://localhost:5173'] });
    onCleanup(() => open.stop());
    for (const origin of ['http://localhost:5173', open.server.url]) {
      const mine = await overHttp(open.server.url, { origin });
      expect((await mine.client.listTools()).tools).not.toHaveLength(0);
    }
    const otherPort = open.server.url.replace(/\d+$/, (port) => `${Number(port) ^ 1}`);
    for (const origin of ['http://evil.example', otherPort, 'null'])
      await expect(overHttp(open.server.url, { origin })).rejects.toThrow(/Origin/);
  });

  it('[M7] a restarted server takes up the session, and a call that is sent again attaches', async () => {
    const folder = temporaryFolder();
    const port = await portToKeep();
    const first = await serve({ port, heartbeatMs: 100 });
    onCleanup(() => first.stop());
    const { home } = first;
    const connected = await overHttp(first.server.url, { authorization: `Bearer ${first.token}` });
    const hold = gate();
    const command = `echo run >> ${folder}/runs; ${hold.wait}; echo over`;
    const input = { command, timeout: '20s' };
    const meta = { 'test/toolUseId': 'call-1' };
    // Before its stream began the request fails; after that the client waits until it is closed.
    const lost = call(connected, 'execute', input, { meta }).catch(String);
    const begun = await connect({ url: first.server.url, token: first.token });
    for (let none = true; none;) none = (await begun.list()).length === 0;
    await begun.close();
    await first.server.close();
    const second = await serve({ home, port, heartbeatMs: 100 });
    onCleanup(() => second.server.close());
    const again = call(connected, 'execute', input, { meta });
    hold.open();
    expect(await again).toMatchObject({ success: true, output: 'over\n', attached: true });
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\n');
    await connected.client.close();
    expect(await lost).toMatch(/fetch failed|closed/i);
  });

  it('[M33] one message at once is sent as JSON; an answer with progress is a stream', async () => {
    const quick = await serve({ heartbeatMs: 20 });
    onCleanup(() => quick.stop());
    const authorization = `Bearer ${quick.token}`;
    const { transport } = await overHttp(quick.server.url, { authorization });
    const post = async (
      method: string,
      params: object,
      begun = (): void => undefined,
    ): Promise<[string | null, string]> => {
      const answer = await fetch(new URL('/mcp', quick.server.url), {
        method: 'POST',
        headers: {
          authorization,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-session-id': transport.sessionId ?? '',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: method, method, params }),
      });
      begun();
      return [answer.headers.get('content-type'), await answer.text()];
    };
    const [json, whole] = await post('tools/list', {});
    expect(json).toMatch(/^application\/json/);
    expect(JSON.parse(whole)).toMatchObject({
      id: 'tools/list',
      result: { tools: expect.anything() as unknown },
    });
    const hold = gate();
    const input = { name: 'execute', arguments: { command: `${hold.wait}; printf "a\\nb"` } };
    const params = { ...input, _meta: { progressToken: 1 } };
    // The answer begins with the first progress.
    const [stream, events] = await post('tools/call', params, hold.open);
    expect(stream).toBe('text/event-stream');
    const messages = [...events.matchAll(/^data: (.*)$/gm)].map(([, data]) =>
      JSON.parse(data ?? ''),
    );
    expect(messages.length).toBeGreaterThan(1);
    expect(messages[0]).toMatchObject({ method: 'notifications/progress' });
    expect(messages.at(-1)).toMatchObject({
      result: { structuredContent: { exit_code: 0, output: 'a\nb' } },
    });
  });

  it('[M7] a session that was ended is ended, and one that is not ours is not found', async () => {
    const { url } = served.server;
    const headers = { authorization: `Bearer ${served.token}` };
    const one = await overHttp(url, headers);
    const id = one.transport.sessionId ?? '';
    await one.transport.terminateSession();
    const post = async (sessionId: string | undefined): Promise<number> => {
      const answer = await fetch(new URL('/mcp', url), {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(sessionId !== undefined && { 'mcp-session-id': sessionId }),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
      await answer.text();
      return answer.status;
    };
    expect(await post(id)).toBe(404);
    expect(await post('made-up')).toBe(404);
    expect(await post(undefined)).toBe(400);
    expect(served.reports).toEqual([]);
  });
});

describe('the revision of 2026', () => {
  it('[M11] over stdio it is spoken, with listening instead of subscriptions', async () => {
    const connected = await negotiatedOverStdio(home, 'auto');
    expect(connected.client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    const command = 'read x; echo "x=$x"; sleep 1000';
    const input = { command, stdin: true, run_in_background: true };
    const { background_process_id: id } = await call(connected, 'execute', input);
    await connected.client.listen({ resourceSubscriptions: [uriOf(id)] });
    const updated = connected.next('notifications/resources/updated');
    await call(connected, 'process_write', { process_id: id, text: '1\n' });
    expect(await updated).toMatchObject({ uri: uriOf(id) });
    await call(connected, 'process_signal', { process_id: id, signal: 'kill' });
  });

  it('[M11] over stdio clients that insist on a revision, or know none of it, are served beside each other', async () => {
    const modes = [{ pin: '2026-07-28' }, 'legacy'] as const;
    const connected = await Promise.all(modes.map((mode) => negotiatedOverStdio(home, mode)));
    expect(connected.map(({ client }) => client.getProtocolEra())).toEqual(['modern', 'legacy']);
    const answers = connected.map((each) => call(each, 'execute', { command: 'echo hi' }));
    expect((await Promise.all(answers)).map(({ output }) => output)).toEqual(['hi\n', 'hi\n']);
  });

  it('[M11] over HTTP its clients speak it, too', async () => {
    const headers = { authorization: `Bearer ${served.token}` };
    const connected = await overHttp(served.server.url, headers, 'auto');
    expect(connected.client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    expect(await call(connected, 'execute', { command: 'echo hi' })).toMatchObject({
      success: true,
    });
  });
});

describe('holdfast mcp', () => {
  it('[M8] needs no server: one killed with -9 during execute changes nothing, the command ran once', async () => {
    const home = homeForStdio();
    const folder = temporaryFolder();
    const connected = await overStdio(home);
    const command = `echo run >> ${folder}/runs; read x < ${folder}/go; echo "x=$x"; exit 5`;
    await runs('mkfifo', [join(folder, 'go')]);
    const waiting = call(connected, 'execute', { command, timeout: '40s' });
    expect(runningServer(home)).toBeUndefined();
    const other = await connect({ home });
    for (let none = true; none;) none = (await other.list()).length === 0;
    const pid = runningServer(home)?.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    await runs('sh', ['-c', `echo free > ${folder}/go`]);
    expect(await waiting).toMatchObject({ success: false, exit_code: 5, output: 'x=free\n' });
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\n');
    await other.close();
  });

  it('[M9] --chat keeps processes to the chat, and commands run where and as the client is', async () => {
    const home = homeForStdio();
    const directory = temporaryFolder();
    const [one, two] = [
      await overStdio(home, '--chat', 'one', '--directory', directory),
      await overStdio(home, '--chat', 'two'),
    ];
    const reported = await call(one, 'execute', { command: 'pwd; echo $AGENT_BROWSER_SESSION' });
    expect(reported.output).toBe(`${directory}\none\n`);
    expect((await call(one, 'process_list', {}))['processes']).toHaveLength(1);
    expect((await call(two, 'process_list', {}))['processes']).toHaveLength(0);
  });

  it('[M9] --embed needs no server, and ends with its processes when its client goes', async () => {
    const home = temporaryFolder();
    const connected = await overStdio(home, '--embed');
    const { output } = await call(connected, 'execute', { command: 'sleep 1000 & echo $!' });
    const pid = Number(output);
    expect(runningServer(home)).toBeUndefined();
    await connected.client.close();
    await turnsUntil(() => !isAlive(readEntry(pid)));
  });

  it('[M16] with --cancel interrupt a cancelled call ends the process that it waits for', async () => {
    const connected = await overStdio(home, '--progress', '100ms', '--cancel', 'interrupt');
    const controller = new AbortController();
    const waiting = call(
      connected,
      'execute',
      { command: 'sleep 1001', timeout: '40s' },
      { signal: controller.signal, onprogress: () => controller.abort('enough') },
    );
    await expect(waiting).rejects.toThrow(/enough/);
    const { processes } = (await call(connected, 'process_list', {})) as unknown as {
      processes: { id: string; command: string }[];
    };
    const id = processes.find(({ command }) => command === 'sleep 1001')?.id;
    const ended = await call(connected, 'process_wait', { process_ids: [id] });
    expect(ended['processes']).toMatchObject([{ met: 'exit', running: false, signal: 'SIGKILL' }]);
  });

  it('[M10] --print-config gives what each client wants', async () => {
    const main = program('../../dist/cli/main.js');
    const print = async (...args: string[]): Promise<string> =>
      (await runs(process.execPath, [main, 'mcp', ...args])).stdout;
    expect(Object.keys(mcpClients)).toEqual([
      'claude-code',
      'codex',
      'gemini-cli',
      'cursor',
      'vscode',
    ]);
    expect(await print('--print-config', 'claude-code')).toBe(
      `claude mcp add holdfast -- ${process.execPath} ${main} mcp\n`,
    );
    expect(await print('--print-config', 'codex', '--chat', 'a')).toContain(
      `args = ["${main}", "mcp", "--max-output", "8000", "--chat", "a"]`,
    );
    expect(await print('--print-config', 'codex', '--max-output', '9000')).toContain(
      `args = ["${main}", "mcp", "--max-output", "9000"]`,
    );
    expect(await print('--print-config', 'codex')).toContain('startup_timeout_sec = 60\n');
    for (const client of ['gemini-cli', 'cursor'])
      expect(JSON.parse(await print('--print-config', client))).toEqual({
        mcpServers: { holdfast: { command: process.execPath, args: [main, 'mcp'] } },
      });
    expect(JSON.parse(await print('--print-config', 'vscode'))).toMatchObject({
      servers: { holdfast: { type: 'stdio' } },
    });
    await expect(print('--print-config', 'emacs')).rejects.toThrow('is not one of');
  });
});
