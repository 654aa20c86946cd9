// The keeper answers clients that wait for the exit of a process, on its own connection: while the server stands still,
// after it was killed, after it left. A client of coder's sees an answer like any other.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import type { KeeperLink } from '../../src/keeper/link.ts';
import { main, Place, Running } from '../support/command-line.ts';
import { PREFIX } from '../support/coder-client.ts';
import { temporaryFolder } from '../support/hosts.ts';
import { requirePosix } from '../support/recorder.ts';
import { RawConnection, type RawAnswer } from '../support/raw-http.ts';

interface Ready {
  readonly url: string;
  readonly socket: string;
  readonly home: string;
  readonly pid: number;
  readonly keeperPid: number;
}

const connections: RawConnection[] = [];
let place: Place;
let server: Running;
let ready: Ready;
let keeper: KeeperLink;
let token: string;

beforeEach(async () => {
  place = new Place();
  server = place.start('serve', '--json', '--token-file', join(place.folder, 'token'));
  await server.until('stdout', '\n');
  ready = JSON.parse(server.text('stdout')) as Ready;
  token = readFileSync(join(place.folder, 'token'), 'utf8').trim();
  keeper = await connectKeeper({ home: ready.home, env: process.env, startIfMissing: false });
});

afterEach(async () => {
  for (const connection of connections.splice(0)) connection.close();
  await keeper.close();
  await place.close();
  await server.ended;
});

function connection(): RawConnection {
  const made = new RawConnection(Number(new URL(ready.url).port));
  connections.push(made);
  return made;
}

function asking(method: 'GET' | 'POST', path: string, body?: unknown): string {
  const text = body === undefined ? '' : JSON.stringify(body);
  const length =
    body === undefined
      ? ''
      : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
  const host = new URL(ready.url).host;
  return `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n${length}\r\n${text}`;
}

function reported(answer: Pick<RawAnswer, 'body'>): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}

/** A process that exits on request. */
async function held(
  on: RawConnection,
  says = 'echo said',
): Promise<{ id: string; wait: string; end(): void }> {
  const path = join(temporaryFolder(), 'fifo');
  const command = `mkfifo ${path}; ${says}; read _ < ${path}; exit 7`;
  const { id } = reported(await on.ask(asking('POST', `${PREFIX}/start`, { command }))) as {
    id: string;
  };
  await keeper.wait('*', { waits: [{ id, for: [{ kind: 'text', text: 'said' }] }] });
  return {
    id,
    wait: asking('GET', `${PREFIX}/${id}/output?wait=true`),
    end: () => writeFileSync(path, '\n'),
  };
}

async function parked(count: number): Promise<void> {
  while ((await keeper.health('*', {})).parkedWaits !== count);
}

/** Of the keeper: its callers, and the connections that it was handed. */
function openSockets(): number {
  const folder = `/proc/${ready.keeperPid}/fd`;
  const links = readdirSync(folder).map((fd) => {
    try {
      return readlinkSync(join(folder, fd));
    } catch {
      return 'closed meanwhile';
    }
  });
  return links.filter((link) => link.startsWith('socket:')).length;
}

/** The keeper knows it, too: it may learn of an exit before it has seen that nobody reads on. */
async function serverGone(signal: NodeJS.Signals): Promise<void> {
  const linked = openSockets();
  server.child.kill(signal);
  await server.ended;
  while (openSockets() >= linked) await keeper.health('*', {});
}

const ENDED = { output: 'said\n', running: false, exit_code: 7 };

/** Containers can forbid it. */
function connectionsCanBeHad(): boolean {
  try {
    closeSync(requirePosix().takeDescriptor(process.pid, 0));
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!connectionsCanBeHad())('a caller who waits', () => {
  it('[SV22] is answered while the server stands still, as the server would, and goes on with the next request', async () => {
    const caller = connection();
    const first = await held(caller);
    caller.write(first.wait);
    await parked(1);
    process.kill(ready.pid, 'SIGSTOP');
    first.end();
    const early = await caller.answer();
    expect(reported(early)).toMatchObject(ENDED);
    process.kill(ready.pid, 'SIGCONT');
    const again = await caller.ask(first.wait.replace('?wait=true', ''));
    expect(reported(again)).toMatchObject(ENDED);
    expect([...early.headers.keys()].sort()).toEqual([...again.headers.keys()].sort());
    for (const name of ['content-type', 'cache-control', 'connection', 'keep-alive'])
      expect(early.headers.get(name)).toBe(again.headers.get(name));
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    '[SV22] is answered when the server was ended by %s, and the connection closes',
    async (signal) => {
      const callers = Array.from({ length: 20 }, connection);
      const process = await held(connection());
      for (const caller of callers) caller.write(process.wait);
      await parked(callers.length);
      await serverGone(signal);
      process.end();
      for (const caller of callers) {
        const answer = await caller.answer();
        expect(reported(answer)).toMatchObject(ENDED);
        expect(answer.headers.get('connection')).toBe('close');
      }
    },
  );

  it('[SV22] is answered in the native dialect too, and let go when it leaves after the server has', async () => {
    const process = await held(connection());
    const wait = { waits: [{ id: process.id, for: [{ kind: 'exit' }] }] };
    const callers = Array.from({ length: 4 }, connection);
    for (const caller of callers) caller.write(asking('POST', '/v1/wait', wait));
    await parked(callers.length);
    server.child.kill('SIGKILL');
    await server.ended;
    const [staying, ...leaving] = callers;
    for (const caller of leaving) caller.close();
    await parked(1);
    process.end();
    const answer = await staying?.answer();
    expect(reported(answer ?? { body: '{}' })).toMatchObject({
      timedOut: false,
      met: [{ kind: 'exit', met: true }],
    });
  });

  it('[SV22] is answered when its start itself waits, although the server was killed meanwhile', async () => {
    const path = join(temporaryFolder(), 'fifo');
    execFileSync('mkfifo', [path]);
    const command = `read _ < ${path}; exit 7`;
    const caller = connection();
    caller.write(asking('POST', '/v1/processes', { command, id: 'one', waitMs: 600_000 }));
    await parked(1);
    await serverGone('SIGKILL');
    writeFileSync(path, '\n');
    const answer = await caller.answer();
    expect(reported(answer)).toMatchObject({
      attached: false,
      process: { id: 'one', outcome: { kind: 'exit', code: 7 } },
    });
    expect(answer.headers.get('connection')).toBe('close');
  });

  it('[SV22] gets the error of a start that waits from the server, and goes on with the next request', async () => {
    const caller = connection();
    const start = (spec: unknown): string => asking('POST', '/v1/processes', spec);
    const refused = await caller.ask(start({ argv: ['no-such-program'], waitMs: 10_000 }));
    expect([refused.status, reported(refused)]).toMatchObject([
      422,
      { error: { code: 'program_not_found' } },
    ]);
    for (const code of [3, 4, 5]) {
      const ended = await caller.ask(start({ command: `exit ${code}`, waitMs: 10_000 }));
      expect(reported(ended)).toMatchObject({ process: { outcome: { code } } });
    }
  });

  it('[SV22] gets the answers of one connection in the order of its requests, each once', async () => {
    const caller = connection();
    const [first, second] = [await held(caller), await held(caller)];
    const listed = asking('GET', `${PREFIX}/list`);
    caller.write(first.wait + second.wait + listed);
    // The second is handled when the first has been answered.
    await parked(1);
    second.end();
    first.end();
    const answers = [await caller.answer(), await caller.answer(), await caller.answer()];
    expect(answers.map(reported)).toMatchObject([ENDED, ENDED, { total: 2 }]);
    expect((await caller.ask(listed)).status).toBe(200);
  });

  it('[SV22] and leaves is let go: nothing of it stays in the keeper', async () => {
    const starter = connection();
    const process = await held(starter);
    const before = openSockets();
    const callers = Array.from({ length: 10 }, connection);
    for (const caller of callers) caller.write(process.wait);
    await parked(callers.length);
    expect(openSockets()).toBeGreaterThanOrEqual(before + callers.length);
    for (const caller of callers) caller.close();
    await parked(0);
    while (openSockets() > before) await keeper.health('*', {});
    process.end();
  });

  it('[SV22] gets all of an answer that its connection takes only in parts', async () => {
    const starter = connection();
    const process = await held(starter, "yes '<<<<<<<<<<<<<<<' | head -c 30000; echo said");
    const caller = connect(ready.socket);
    const parts: Buffer[] = [];
    // Unread, the first answer fills most of what the kernel keeps for this connection.
    caller.write(process.wait.replace('?wait=true', ''));
    await once(caller, 'readable');
    caller.write(process.wait + asking('GET', `${PREFIX}/list`));
    await parked(1);
    process.end();
    await keeper.completions('*', { waitMs: 60_000 });
    await new Promise<void>((resolve) => {
      caller.on('data', (part: Buffer) => {
        parts.push(part);
        if (Buffer.concat(parts).toString().includes('"total":1')) resolve();
      });
    });
    caller.destroy();
    const [, ...bodies] = Buffer.concat(parts)
      .toString()
      .split(/HTTP\/1\.1 200 OK\r\n[^{]*/);
    const [early, last, list, ...more] = bodies.map((body) => reported({ body }));
    expect(early).toMatchObject({ running: true });
    expect(last).toMatchObject({ running: false, exit_code: 7, output: early?.['output'] });
    expect(list).toMatchObject({ total: 1 });
    expect(more).toEqual([]);
  });
});

describe('a caller whose connection cannot be taken', () => {
  it('[SV71] is answered by the server when HOLDFAST_HANDOVER is off', async () => {
    server.child.kill('SIGTERM');
    await server.ended;
    const args = ['serve', '--json', '--token-file', join(place.folder, 'token')];
    server = new Running(args, { env: { ...place.env, HOLDFAST_HANDOVER: 'off' } });
    await server.until('stdout', '\n');
    ready = JSON.parse(server.text('stdout')) as Ready;
    const caller = connection();
    const first = await held(caller);
    const before = openSockets();
    caller.write(first.wait);
    await parked(1);
    expect(openSockets()).toBe(before);
    first.end();
    expect(reported(await caller.answer())).toMatchObject(ENDED);
  });

  it.skipIf(process.getuid?.() !== 0)(
    '[SV23] is answered by the server where the keeper cannot have its connection',
    async () => {
      server.child.kill('SIGTERM');
      await server.ended;
      await place.run('shutdown');
      // The kernel gives descriptors of a program with more capabilities only to one that may trace it.
      const less = ['--bounding-set', '-sys_ptrace', '--inh-caps', '-sys_ptrace'];
      const env = { ...process.env, ...place.env };
      const started = spawn('setpriv', [...less, process.execPath, main, 'run', 'true'], { env });
      expect(await once(started, 'close')).toEqual([0, null]);
      server = place.start('serve', '--json', '--token-file', join(place.folder, 'token'));
      await server.until('stdout', '\n');
      ready = JSON.parse(server.text('stdout')) as Ready;
      await keeper.close();
      keeper = await connectKeeper({ home: ready.home, env: process.env, startIfMissing: false });
      const caller = connection();
      const waited = await held(caller);
      const before = openSockets();
      caller.write(waited.wait);
      await parked(1);
      expect(openSockets()).toBe(before);
      waited.end();
      expect(reported(await caller.answer())).toMatchObject(ENDED);
      expect(reported(await caller.ask(waited.wait))).toMatchObject(ENDED);
    },
  );
});
