// The recordings that need surroundings of their own: a clock, files, a web server, tokens, pipes; and those of the real
// client. What ours answers instead is said with each, and argued in docs/wire/codex.md.

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { describeEnvironment } from '../../src/server/codex/methods.ts';
import { listenExecServer } from '../../src/server/codex/exec-server.ts';
import type { ServerOptions } from '../../src/server/server.ts';
import { serve, type Served } from '../support/coder-client.ts';
import { CodexClient } from '../support/codex-client.ts';
import { recording, replayed, type Entry, type ReplayOptions } from '../support/codex-replay.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';

interface InheritedEnvironment extends Served {
  readonly root: string;
  readonly codex: string;
}

async function surroundings(options: Partial<ServerOptions> = {}): Promise<InheritedEnvironment> {
  const root = temporaryFolder();
  mkdirSync(join(root, 'ws'));
  const home = join(root, 'user-home');
  const env = { ...process.env, HOME: home, CODEX_HOME: join(root, 'codex'), PLAIN: 'plain' };
  const served = await serve({ env, ...options });
  onCleanup(() => served.stop());
  const codex = `ws://127.0.0.1:${served.port}/codex?token=${served.token}`;
  return Object.assign(served, { root, codex });
}

/** With what is special about it replaced, and what happened beside it. */
function replay(
  { root, codex }: InheritedEnvironment,
  name: string,
  steps: ReplayOptions['steps'] = {},
  ports: Readonly<Record<string, string>> = {},
): Promise<Record<string, unknown>> {
  return replayed(recording(name, { '/sandbox': root, ...ports }), {
    root,
    open: () => CodexClient.connect(codex),
    steps,
  });
}

it('[CX902] codex-09-detach-expiry.jsonl', async () => {
  const made = await surroundings({ detachMs: 100 });
  const ended = async (): Promise<void> => {
    const { met } = await made.server.host.wait('*', {
      waits: [{ id: 'p', for: [{ kind: 'settled' }] }],
    });
    expect(met[0]?.process.outcome).toMatchObject({ kind: 'signal' });
  };
  expect(await replay(made, 'codex-09-detach-expiry.jsonl', { 'A close': ended })).toEqual({});
});

it('[CX902] codex-10-retention.jsonl', async () => {
  const clock = new FakeClock();
  const made = await surroundings({ clock });
  // Its exit was reported by the keeper, whose clock is the machine's: from there on ours counts.
  const atItsEnd = async (): Promise<void> => {
    const { closedAtMs = 0 } = await made.server.host.get('*', { id: 'p' });
    clock.wallOffsetMs = closedAtMs - clock.nowUs() / 1000;
  };
  const steps = { A3: atItsEnd, A4: () => clock.advance(29_000), A5: () => clock.advance(1700) };
  expect(await replay(made, 'codex-10-retention.jsonl', steps)).toEqual({
    // Its id is free, and what it printed is still there.
    A6: expect.objectContaining({ exited: true, closed: true, nextSeq: 4 }) as unknown,
  });
});

it('[CX902] codex-12-fs.jsonl', async () => {
  const made = await surroundings();
  const steps = { A13: () => symlinkSync('f.txt', join(made.root, 'ws/fs/link')) };
  expect(await replay(made, 'codex-12-fs.jsonl', steps)).toEqual({
    // Sorted, where the peer tells in the order of the disk.
    A22: {
      entries: [
        { fileName: 'a', isDirectory: true, isFile: false },
        { fileName: 'f.txt', isDirectory: false, isFile: true },
        { fileName: 'link', isDirectory: false, isFile: true },
      ],
    },
  });
});

it('[CX902] codex-13-http.jsonl', async () => {
  const made = await surroundings();
  const port = await website();
  const name = 'codex-13-http.jsonl';
  expect(await replay(made, name, {}, { '127.0.0.1:43987': `127.0.0.1:${port}` })).toEqual({});
});

it('[CX902] codex-14-capabilities-config.jsonl', async () => {
  const made = await surroundings();
  const caps = join(made.root, 'ws/caps');
  for (const folder of ['.codex-plugin', 'skills/demo'])
    mkdirSync(join(caps, folder), { recursive: true });
  writeFileSync(join(caps, '.codex-plugin/plugin.json'), '{"name":"p"}');
  const skill = '---\nname: demo\ndescription: d\n---\nbody';
  writeFileSync(join(caps, 'skills/demo/SKILL.md'), skill);
  expect(await replay(made, 'codex-14-capabilities-config.jsonl')).toEqual({});
});

it('[CX902] the environment has the fields and capabilities of the recording, but for those that are listed', () => {
  const entry = recording('codex-14-capabilities-config.jsonl', {}).find(
    ({ dir, msg }) => dir === 'recv' && (msg as { id: number }).id === 2,
  );
  const { result: theirs } = (entry as { msg: { result: ReturnType<typeof describeEnvironment> } })
    .msg;
  const ours = describeEnvironment({ env: process.env, cwd: '/', userHome: '/', version: '1' });
  const missing = (from: object = {}, at: object = {}): string[] =>
    Object.entries(from).flatMap(([name, value]) => (value && !(name in at) ? [name] : []));
  expect(missing(theirs, ours)).toEqual(['providerId', 'prependPathDirs']);
  expect(missing(ours, theirs)).toEqual([]);
  expect(missing(theirs.capabilities, ours.capabilities)).toEqual([
    'networkProxyLaunch',
    'networkProxyReviewDomains',
    'credentialMasking',
    'credentialMaskingCustomProviders',
    'linuxRootWritePreservesDevices',
    'linuxApprovedRootWritePreservesRestrictions',
  ]);
  expect(missing(ours.capabilities, theirs.capabilities)).toEqual([
    'processList',
    'processResize',
    'processCloseStdin',
    'processAnySignal',
  ]);
});

it('[CX902] codex-16-auth.jsonl', async () => {
  const root = temporaryFolder();
  mkdirSync(join(root, 'ws'));
  const server = await listenExecServer({
    home: join(root, 'home'),
    env: process.env,
    cwd: '/',
    listen: 'ws://127.0.0.1:0',
    report: (message) => {
      throw new Error(message);
    },
    auth: { kind: 'capability-token', tokenFile: tokenFile(root) },
    keeperArgs: ['--idle-ms', '60000'],
  });
  onCleanup(async () => {
    await server.close();
    await stopKeeper(join(root, 'home'));
  });
  const said: Readonly<Record<string, string | undefined>> = {
    wrong: 'Bearer wrong',
    basic: `Basic ${Buffer.from('x:right').toString('base64')}`,
    good: 'Bearer right-and-long-enough-to-be-a-token',
  };
  const open = (conn: string): Promise<CodexClient> => {
    const authorization = said[conn];
    return CodexClient.connect(server.url, {
      ...(authorization !== undefined && { authorization }),
    });
  };
  const refused = async (conn: string): Promise<void> => {
    await expect(open(conn)).rejects.toThrow('Unexpected server response: 401');
  };
  const steps = Object.fromEntries(
    ['none', 'wrong', 'basic'].map((conn) => [`${conn} unexpected-response`, () => refused(conn)]),
  );
  expect(await replayed(recording('codex-16-auth.jsonl', {}), { root, open, steps })).toEqual({});
});

it('[CX902] codex-17-stdio.jsonl', async () => {
  const root = temporaryFolder();
  const home = join(root, 'home');
  onCleanup(() => stopKeeper(home));
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const child = spawn(
    process.execPath,
    [main, 'exec-server', '--home', home, '--listen', 'stdio'],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const lines = new LineSocket(child.stdin, child.stdout);
  const entries: Entry[] = [
    { conn: 'A', dir: 'event', msg: { event: 'open' } },
    ...recording('codex-17-stdio.jsonl', {}).map((entry) => ({ conn: 'A', ...entry })),
  ];
  const differing = await replayed(entries, {
    root,
    open: async () => CodexClient.over(lines as unknown as WebSocket),
    steps: { 'blank line ignored; bad line answered with id -1': () => lines.send('\nnot json') },
  });
  expect(differing).toEqual({
    'A-1': {
      code: -32600,
      message: expect.stringMatching(
        /^failed to parse JSON-RPC message from exec-server stdio: ./,
      ) as unknown,
    },
  });
  if (child.exitCode === null) await once(child, 'exit');
  expect([child.exitCode, child.signalCode]).toEqual([0, null]);
});

it('[CX902] codex-18-keepalive.jsonl', async () => {
  const clock = new FakeClock();
  const made = await surroundings({ clock });
  let pings = 0;
  const ping = async (client?: CodexClient): Promise<void> => {
    const came = once(client?.socket as EventEmitter, 'ping');
    clock.advance(30_000);
    await came;
    pings += 1;
  };
  const steps = { 'auto-pong ping': ping };
  expect(await replay(made, 'codex-18-keepalive.jsonl', steps)).toEqual({});
  expect(pings).toBe(4);
});

it('[CX902] codex-19-fs-0.166-extras.jsonl', async () => {
  const made = await surroundings();
  mkdirSync(join(made.root, 'ws/w/p'), { recursive: true });
  expect(await replay(made, 'codex-19-fs-0.166-extras.jsonl')).toEqual({});
});

it('[CX902] codex-20-fs-watch-missing.jsonl', async () => {
  const made = await surroundings();
  const at = (name: string): string => join(made.root, 'ws/w', name);
  mkdirSync(at('p'), { recursive: true });
  const steps = {
    A2: () => writeFileSync(at('miss'), ''),
    A3: () => writeFileSync(at('p/new'), ''),
    A4: () => mkdirSync(at('a')),
  };
  expect(await replay(made, 'codex-20-fs-watch-missing.jsonl', steps)).toEqual({});
});

const realClient = { applyPatch: {}, basic: {}, poll: {}, tty: {} };

for (const name of Object.keys(realClient))
  it(`[CX902] real-${name}.jsonl`, async () => {
    const made = await surroundings();
    mkdirSync(join(made.root, name, 'ws'), { recursive: true });
    if (name === 'applyPatch')
      writeFileSync(join(made.root, name, 'ws/a.txt'), 'one\ntwo\nthree\n');
    expect(await replayReal(made, name)).toEqual({});
  });

it('[CX902] real-resume.jsonl', async () => {
  const made = await surroundings();
  mkdirSync(join(made.root, 'resume/ws'), { recursive: true });
  const differing = await replayReal(made, 'resume');
  // Where in the ticking the connection was cut is a matter of moments.
  const process = '2 62772-4e395eba-8622-4';
  const read = { exited: false, exitCode: null, closed: false, failure: null };
  const reported = { exitCode: 9, closed: true, dense: true };
  if ('22' in differing) expect(differing['22']).toMatchObject(read);
  if (process in differing) expect(differing[process]).toMatchObject(reported);
  expect(Object.keys(differing).filter((key) => key !== '22' && key !== process)).toEqual([]);
});

/** Recorded between the real client and the peer, in other words. */
function replayReal(
  { root, codex }: InheritedEnvironment,
  name: string,
): Promise<Record<string, unknown>> {
  const words: Readonly<Record<string, Entry['dir']>> = {
    'client->server': 'send',
    'server->client': 'recv',
  };
  const entries = recording(`real-${name}.jsonl`, { '/sandbox': root }).map((entry): Entry => {
    const { conn, dir = '' as never, msg } = entry;
    const event = dir === ('connect' as never) ? 'open' : 'close';
    const known = words[dir];
    return known
      ? { conn: String(conn), dir: known, msg }
      : { conn: String(conn), dir: 'event', msg: { event } };
  });
  return replayed(entries, { root, open: () => CodexClient.connect(codex) });
}

function tokenFile(folder: string): string {
  const file = join(folder, 'token');
  writeFileSync(file, 'right-and-long-enough-to-be-a-token', { mode: 0o600 });
  return file;
}

/** The web server of the recording. */
async function website(): Promise<number> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url = '', method = '', headers } = request;
  if (url === '/slow') return;
  if (url === '/redir') response.writeHead(302, { location: '/final' }).end();
  else if (url === '/stream') {
    response.writeHead(200, { 'content-type': 'text/plain' });
    for (const part of ['part1', 'part2', 'end']) response.write(part);
    response.end();
  } else {
    const body = Buffer.concat((await request.toArray()) as Buffer[]).toString();
    response.setHeader('x-echo', String(headers['x-a'] ?? ''));
    response.setHeader('set-cookie', ['a=1', 'b=2']);
    response.writeHead(200, { date: 'D' });
    response.write(`${method} ${url} ${body}`);
    response.end();
  }
}

/** As much of a WebSocket as the client uses, on lines. */
class LineSocket extends EventEmitter {
  private readonly input: NodeJS.WritableStream;
  private rest = '';

  constructor(input: NodeJS.WritableStream, output: NodeJS.ReadableStream) {
    super();
    this.input = input;
    output.on('data', (chunk: Buffer) => {
      const lines = (this.rest + chunk.toString()).split('\n');
      this.rest = lines.pop() ?? '';
      for (const line of lines) this.emit('message', Buffer.from(line));
    });
    output.on('end', () => this.emit('close'));
  }

  send(line: string): void {
    this.input.write(`${line}\n`);
  }

  terminate(): void {
    this.input.end();
  }
}
