// The doors at their edges: clients that never let go, files of tokens that are torn or no files at all, and starts that
// go round the rate.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { closeDoor, listenUnix } from '../../src/server/http/listen.ts';
import type { Route } from '../../src/server/http/router.ts';
import { Tokens } from '../../src/server/http/tokens.ts';
import { openDoor, serve } from '../support/coder-client.ts';
import { onCleanup, temporaryFolder } from '../support/hosts.ts';
import { NativeClient } from '../support/native-client.ts';
import { RawConnection } from '../support/raw-http.ts';
import { turnsUntil } from '../support/recorder.ts';

const hello: Route = { method: 'GET', path: '/x', handler: async () => 'hello' };
const open: Route = { ...hello, path: '/open', anonymous: true };

/** A client that keeps its side open and reads nothing. Resolves when the server has closed its side. */
async function muteClient(door: { once: unknown }, port: number, bytes: string): Promise<void> {
  const accepted = once(door as never, 'connection') as Promise<[Socket]>;
  const client = new Socket({ allowHalfOpen: true });
  onCleanup(() => void client.destroy());
  client.on('error', () => undefined);
  client.pause();
  client.connect(port, '127.0.0.1', () => client.write(bytes));
  const [socket] = await accepted;
  if (!socket.closed)
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
    });
}

describe('connections', () => {
  const patience = { headers: 50, request: 100, idle: 50, check: 10, linger: 10 };

  it('[G12] a mute client costs no descriptor after its time: silent, half a head, nonsense, refused', async () => {
    const { door, port } = await openDoor([hello], { patience });
    const host = `Host: 127.0.0.1:${port}\r\n`;
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
    for (const bytes of [
      '',
      'GET /x HT',
      'nonsense\r\n\r\n',
      `GET /x HTTP/1.1\r\n${host}\r\n`,
      `GET /x HTTP/1.1\r\n${host}${upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    ])
      await muteClient(door, port, bytes);
    expect(await new Promise((resolve) => void door.getConnections((_, n) => resolve(n)))).toBe(0);
  });

  it('[G11] a connection that used only anonymous routes is still unproven', async () => {
    const unproven = { softLimit: 1, patienceMs: 0, hardLimit: 10 };
    const { port } = await openDoor([hello, open], { unproven });
    const [anonymous, known, next] = [1, 2, 3].map(() => new RawConnection(port));
    onCleanup(() => [anonymous, known, next].forEach((each) => each?.close()));
    const head = (path: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer full\r\n\r\n`;
    expect((await anonymous?.ask(head('/open')))?.status).toBe(200);
    expect((await known?.ask(head('/x')))?.status).toBe(200);
    expect((await next?.ask(head('/x')))?.status).toBe(200);
    await anonymous?.ended();
    expect((await known?.ask(head('/x')))?.status).toBe(200);
  });

  it('[G16] requests that were sent at once are handled one after the other, all of them, in order', async () => {
    const asked: string[] = [];
    const opened = new Map<string, () => void>();
    const held: Route = {
      method: 'GET',
      path: '/held/:name',
      handler: async ({ params: { name = '' } }) => {
        asked.push(name);
        await new Promise<void>((resolve) => opened.set(name, resolve));
        return name;
      },
    };
    const { port } = await openDoor([held]);
    const [client, left] = [1, 2].map(() => new RawConnection(port));
    if (!client || !left) throw new Error('There are two.');
    onCleanup(() => [client, left].forEach((each) => each.close()));
    const head = (name: string): string =>
      `GET /held/${name} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer full\r\n\r\n`;
    const names = Array.from({ length: 60 }, (_, at) => `n${at}`);
    client.write(names.map(head).join(''));
    left.write(['first', 'second'].map(head).join(''));
    await turnsUntil(() => asked.includes('n0') && asked.includes('first'));
    expect(asked).toHaveLength(2);
    // What waits behind it is never handled when its client goes away.
    left.close();
    for (const name of names) {
      await turnsUntil(() => opened.has(name));
      opened.get(name)?.();
      expect(JSON.parse((await client.answer()).body)).toBe(name);
    }
    opened.get('first')?.();
    expect(asked.toSorted()).toEqual([...names, 'first'].toSorted());
  });

  it('[G15] a socket is private and the umask is as before in the same turn', async () => {
    const path = join(temporaryFolder(), 'x.sock');
    const server = createServer();
    onCleanup(() => closeDoor(server));
    const before = process.umask();
    const listening = listenUnix(server, path);
    const meanwhile = process.umask();
    await listening;
    expect([meanwhile, lstatSync(path).mode & 0o777]).toEqual([before, 0o600]);
  });
});

const TOKENS = new URL('../../dist/server/http/tokens.js', import.meta.url).href;
const CLOCK = new URL('../../dist/base/clock.js', import.meta.url).href;

/** A program that makes tokens in a folder, one after the other. */
function makeTokens(folder: string, owner: string, count: number): string[] {
  const program = `
    const [{ Tokens }, { systemClock }] = await Promise.all([import(${JSON.stringify(TOKENS)}), import(${JSON.stringify(CLOCK)})]);
    const tokens = new Tokens(process.argv[1], systemClock);
    try { for (let n = 0; n < ${count}; n += 1) tokens.create(process.argv[2]); }
    catch (error) { console.log(error.code); process.exitCode = 1; }`;
  return ['--input-type=module', '-e', program, folder, owner];
}

describe('tokens.json', () => {
  it('[G13] two programs that make tokens at once lose none', async () => {
    const folder = temporaryFolder();
    const ends = ['a', 'b', 'c'].map(async (owner) => {
      const child = spawn(process.execPath, makeTokens(folder, owner, 20), { stdio: 'inherit' });
      const [code] = (await once(child, 'exit')) as [number];
      return code;
    });
    expect(await Promise.all(ends)).toEqual([0, 0, 0]);
    expect(new Tokens(folder, systemClock).list()).toHaveLength(60);
  });

  it('[G13] a file that cannot be written whole stays as it was, and nothing lies beside it', () => {
    const folder = temporaryFolder();
    const tokens = new Tokens(folder, systemClock);
    const { token } = tokens.create('chat:a');
    for (let n = 0; n < 20; n += 1) tokens.create('chat:b');
    const before = readFileSync(join(folder, 'tokens.json'), 'utf8');
    // A file may not grow beyond one block: the kernel takes a part of the bytes, and refuses the rest.
    const limited = `trap '' XFSZ; ulimit -f 1; exec "$0" "$@"`;
    const args = ['-c', limited, process.execPath, ...makeTokens(folder, 'chat:c', 1)];
    const { status, stdout } = spawnSync('sh', args, { encoding: 'utf8' });
    expect([status, stdout.trim()]).toEqual([1, 'storage_full']);
    expect(readFileSync(join(folder, 'tokens.json'), 'utf8')).toBe(before);
    expect(readdirSync(folder).toSorted()).toEqual(['tokens.json', 'tokens.json.lock']);
    expect(tokens.bearer(token)).toMatchObject({ owner: 'chat:a' });
  });

  it('[G14] a torn file, a FIFO or a folder is reported, and the admin token works', async () => {
    const served = await serve();
    onCleanup(() => served.stop());
    const file = join(served.home, 'tokens.json');
    const scoped = NativeClient.of({ ...served, token: served.tokens.create('chat:a').token });
    const whole = readFileSync(file, 'utf8');
    const spoil = [
      () => writeFileSync(file, whole.slice(0, whole.length / 2)),
      () => writeFileSync(file, '[{"id":"x","owner":"*","sum":"12"}]'),
      () => spawnSync('sh', ['-c', 'mkfifo "$0"', file]),
      () => mkdirSync(file),
    ];
    for (const spoiled of spoil) {
      rmSync(file, { recursive: true });
      spoiled();
      expect(await scoped.get('/v1/processes')).toMatchObject({
        status: 503,
        json: { error: { code: 'tokens_damaged', remedy: expect.stringContaining('Remove') } },
      });
      expect((await NativeClient.of(served).get('/v1/processes')).status).toBe(200);
    }
    rmSync(file, { recursive: true });
    writeFileSync(file, whole, { mode: 0o600 });
    expect((await scoped.get('/v1/processes')).status).toBe(200);
    expect(served.reports).toEqual([]);
  });
});

describe('starts', () => {
  it('[API31] a terminal is a start like any other', async () => {
    const served = await serve({ startRate: { perSecond: 0.001, burst: 2 } });
    onCleanup(() => served.stop());
    const client = NativeClient.of({ ...served, token: served.tokens.create('chat:a').token });
    const opened = async (): Promise<number> =>
      (await client.post('/v1/terminals', { argv: ['/bin/cat'] })).status;
    expect([await opened(), await opened(), await opened()]).toEqual([200, 200, 429]);
    expect((await client.post('/v1/processes', { command: 'true' })).status).toBe(429);
  });
});
