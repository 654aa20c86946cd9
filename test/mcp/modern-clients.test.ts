// Clients of MCP's revision of 2026 over HTTP: progress, listening, a killed server, and clients of older revisions beside them.

import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { serve, type Served } from '../support/coder-client.ts';
import { Place } from '../support/command-line.ts';
import { gate, onCleanup, temporaryFolder } from '../support/hosts.ts';
import { overHttp, type Connected } from '../support/mcp-clients.ts';
import { handlerOnFakeClock, serveAt, structured } from '../support/modern-mcp.ts';
import { portToKeep } from '../support/ports.ts';
import { turnsUntil } from '../support/recorder.ts';
import { sized } from '../support/slow.ts';

type Extra = Parameters<Client['callTool']>[1];

let served: Served;
/** Path and status of the requests that the server has ended. */
const ended: string[] = [];

beforeAll(async () => {
  served = await serve({
    heartbeatMs: 100,
    access: ({ path, status }) => ended.push(`${path} ${status}`),
  });
});

afterAll(() => served.stop());

function modern(token = served.token): Promise<Connected> {
  return overHttp(served.server.url, { authorization: `Bearer ${token}` }, 'auto');
}

async function execute(
  client: Client,
  input: Record<string, unknown>,
  { meta, ...extra }: Extra & { meta?: Record<string, unknown> } = {},
): Promise<Record<string, unknown>> {
  const params = { name: 'execute', arguments: input, ...(meta && { _meta: meta }) };
  return structured(await client.callTool(params, extra));
}

/** The id of a process that prints a line for each line it gets. */
async function echoing({ client }: Connected): Promise<string> {
  const answer = await execute(client, { command: 'cat', stdin: true, run_in_background: true });
  return String(answer['background_process_id']);
}

const uriOf = (id: string): string => `holdfast://process/${id}/output`;

function type(id: string): Promise<unknown> {
  return served.server.host.write('*', { id, data: Buffer.from('line\n') });
}

it('[M45] a modern client that asks for progress gets it in a stream while its call waits', async () => {
  const { client } = await modern();
  const hold = gate();
  const seen: number[] = [];
  const onprogress = ({ progress }: { progress: number }): void => {
    if (seen.push(progress) === 3) hold.open();
  };
  const input = { command: `${hold.wait}; echo over`, timeout: '90s' };
  expect(await execute(client, input, { onprogress })).toMatchObject({
    success: true,
    output: 'over\n',
  });
  expect(seen.length).toBeGreaterThanOrEqual(3);
  expect([...seen].sort((a, b) => a - b)).toEqual(seen);
});

it('[M45] a modern client that asks for none is answered after 45 s, and the command goes on', async () => {
  const { send, pass } = await handlerOnFakeClock();
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const url = new URL('http://localhost/mcp');
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: send }));
  onCleanup(() => client.close());
  const waiting = execute(client, { command: 'exec sleep 600', timeout: '10m' });
  await pass(45_000);
  expect(await waiting).toMatchObject({
    running: true,
    success: false,
    error: 'command timed out after 45s and is still running',
    background_process_id: expect.any(String) as string,
  });
});

it('[M46] listening is acknowledged, tells of the growth of own processes only, and ends with its connection', async () => {
  const one = await modern();
  const two = await modern(served.tokens.create('chat:other').token);
  const [mine, other] = [await echoing(one), await echoing(two)];
  const filter = { resourceSubscriptions: [mine, other].map(uriOf) };
  const subscription = await one.client.listen(filter);
  expect(subscription.honoredFilter).toMatchObject(filter);
  await two.client.listen(filter);
  const [toOne, toTwo] = [one, two].map((each) => each.next('notifications/resources/updated'));
  await type(mine);
  expect(await toOne).toMatchObject({ uri: uriOf(mine) });
  // Were this client told of the other's process, that would have come first.
  await type(other);
  expect(await toTwo).toMatchObject({ uri: uriOf(other) });
  const urisOf = ({ reported }: Connected): unknown[] =>
    reported.map(({ params }) => params['uri']);
  expect([urisOf(one), urisOf(two)]).toEqual([[uriOf(mine)], [uriOf(other)]]);
  const before = ended.length;
  await subscription.close();
  // The other one listens on: this is the end of the stream that was closed.
  await turnsUntil(() => ended.slice(before).includes('/mcp 200'));
  await served.server.host.remove('*', { id: mine, force: true });
  await served.server.host.remove('*', { id: other, force: true });
});

it('[M46] who listens is told of a process that was there before: of another client, or of a server that ended', async () => {
  const before = served.reports.length;
  const started = await served.server.host.start('mcp', { command: 'cat', stdin: 'pipe' });
  const { id } = started.process;
  const connected = await modern();
  const listened = [uriOf(id), uriOf('nobody'), 'file:///etc'];
  await connected.client.listen({ resourceSubscriptions: listened });
  const updated = connected.next('notifications/resources/updated');
  await type(id);
  expect(await updated).toMatchObject({ uri: uriOf(id) });
  await served.server.host.remove('*', { id, force: true });
  expect(served.reports.slice(before)).toEqual([]);
});

it('[M47] a server that is killed during a call breaks its connection; the same call id attaches at the next one', async () => {
  const place = new Place();
  onCleanup(() => place.close());
  const folder = temporaryFolder();
  const port = await portToKeep();
  const connect = async () => {
    const { server, url, token } = await serveAt(place, port);
    const authorization = `Bearer ${token}`;
    return { server, ...(await overHttp(url, { authorization }, { pin: '2026-07-28' })) };
  };
  const first = await connect();
  const hold = gate();
  const input = { command: `echo run >> ${folder}/runs; ${hold.wait}; exit 5`, timeout: '40s' };
  const meta = { 'test.example/toolCallId': 'call-1' };
  const broken = execute(first.client, input, { meta }).catch(String);
  await turnsUntil(() => existsSync(join(folder, 'runs')));
  first.server.child.kill('SIGKILL');
  await once(first.server.child, 'exit');
  expect(await broken).toMatch(/fetch failed|terminated|closed/i);
  const second = await connect();
  const again = execute(second.client, input, { meta });
  hold.open();
  expect(await again).toMatchObject({ exit_code: 5, attached: true });
  expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\n');
  second.server.child.kill('SIGTERM');
  await second.server.ended;
});

it('[M48] many calls of both eras at one address, two hundred in the long form, each get their own answer', async () => {
  const headers = { authorization: `Bearer ${served.token}` };
  const modes = ['legacy', 'auto', 'legacy', 'auto'] as const;
  const clients = await Promise.all(
    modes.map((mode) => overHttp(served.server.url, headers, mode)),
  );
  expect(clients.map(({ client }) => client.getProtocolEra())).toEqual(
    modes.map((mode) => (mode === 'auto' ? 'modern' : 'legacy')),
  );
  const words = clients.map((_, at) =>
    Array.from({ length: sized(15, 50) }, (__, nth) => `${at}-${nth}`),
  );
  // Each client numbers its requests from the same number on.
  const outputs = clients.map(({ client }, at) =>
    Promise.all(
      (words[at] ?? []).map(async (word) => {
        const { output } = await execute(client, { command: `echo ${word}` });
        return String(output).trim();
      }),
    ),
  );
  expect(await Promise.all(outputs)).toEqual(words);
});
