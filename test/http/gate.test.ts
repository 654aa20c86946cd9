// The gate: nothing gets in that should not, and nothing gets out. Requests are raw bytes where no HTTP client would send
// them.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { startServer } from '../../src/server/server.ts';
import { createDoor } from '../../src/server/http/door.ts';
import { Router, type Route } from '../../src/server/http/router.ts';
import { UnprovenConnections } from '../../src/server/http/unproven-connections.ts';
import { Tokens } from '../../src/server/http/tokens.ts';
import type { AccessEntry } from '../../src/server/http/request-context.ts';
import { openDoor, PREFIX, serve, type Served } from '../support/coder-client.ts';
import { lookBelow } from '../support/files.ts';
import { failure, onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';
import { RawConnection } from '../support/raw-http.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { dice, SEED } from '../support/random.ts';
import { turnsUntil } from '../support/recorder.ts';
import { isSlowRun } from '../support/slow.ts';

async function fresh(options: Parameters<typeof serve>[0] = {}): Promise<Served> {
  const served = await serve(options);
  onCleanup(() => served.stop());
  return served;
}

function raw(port: number): RawConnection {
  const connection = new RawConnection(port);
  onCleanup(() => connection.close());
  return connection;
}

interface Case {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  /** Header lines, without Host unless it is among them. */
  readonly lines: readonly string[];
  /** What it must be refused with. */
  readonly status: number;
  /** Refused by the parser of HTTP itself: the door never hears of it. */
  readonly parser?: true;
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH'];
const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

function targetsOf(routes: readonly string[]): string[] {
  const known = routes.map((route) => route.split(' ')[1]?.replaceAll(/:\w+/g, 'some-id') ?? '/');
  const unknown = ['/', '/x', '/api', '/v1', '/v1/x/y', '/token', '/%00', `${PREFIX}/a/b/c`];
  return Array.from(new Set([...known, ...unknown]));
}

function hostCases(port: number): [string, string[], number, true?][] {
  const names = [
    'evil.example',
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    `localhost.evil:${port}`,
    '127.0.0.1:',
    '127.0.0.1:0',
    '127.0.0.1:*',
    '127.0.0.1:123456',
    '',
    `LOCALHOST:${port}`,
    `localhost.:${port}`,
    `127.0.0.1.:${port}`,
    `0.0.0.0:${port}`,
    `[::]:${port}`,
    `2130706433:${port}`,
    `127.1:${port}`,
    `user@127.0.0.1:${port}`,
    `127.0.0.1:${port}, evil.example`,
    `127.0.0.1:0${port}`,
    `[::1]:${port}x`,
    `[::1].evil:${port}`,
  ];
  return [
    ...names.map((name): [string, string[], number] => [`Host "${name}"`, [`Host: ${name}`], 403]),
    ['no Host', [], 400, true],
    ['two Hosts', [`Host: 127.0.0.1:${port}`, 'Host: evil.example'], 403],
    ['the Host twice', [`Host: 127.0.0.1:${port}`, `Host: 127.0.0.1:${port}`], 403],
  ];
}

function originCases(port: number): [string, string[]][] {
  const origins = [
    'http://evil.example',
    'null',
    '',
    `https://127.0.0.1:${port}`,
    // Another program of this machine: only the origin with our port is the dashboard's.
    `http://127.0.0.1:${port === 65535 ? 1 : port + 1}`,
    'http://127.0.0.1',
    'http://localhost',
    `http://holdfast.localhost:${port}`,
    `http://127.0.0.1:${port}.evil.example`,
    'chrome-extension://abc',
  ];
  return [
    ...origins.map((origin): [string, string[]] => [`Origin "${origin}"`, [`Origin: ${origin}`]]),
    ['two Origins', [`Origin: http://127.0.0.1:${port}`, 'Origin: null']],
    ['another site', ['Sec-Fetch-Site: cross-site']],
  ];
}

function tokenCases(served: Served): [string, string[], number, string?][] {
  const { token, tokens } = served;
  const revoked = tokens.create('chat:revoked');
  tokens.revoke(revoked.info.id);
  const bearer = (text: string): string[] => [`Authorization: Bearer ${text}`];
  tokens.create('chat:kept');
  const [total = ''] =
    /[0-9a-f]{64}/.exec(readFileSync(join(served.home, 'tokens.json'), 'utf8')) ?? [];
  const basic = Buffer.from(`admin:${token}`).toString('base64');
  return [
    ['none', [], 401],
    ['empty', ['Authorization:'], 401],
    ['empty bearer', ['Authorization: Bearer '], 401],
    ['wrong', bearer(`${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`), 401],
    ['shortened', bearer(token.slice(0, -1)), 401],
    ['lengthened', bearer(`${token}A`), 401],
    ['other case', bearer(token.toLowerCase() === token ? 'x' : token.toLowerCase()), 401],
    ['bare', [`Authorization: ${token}`], 401],
    ['other scheme', [`Authorization: Basic ${basic}`], 401],
    ['two words', bearer(`${token} ${token}`), 401],
    ['expired', bearer(tokens.create('chat:expired', 0).token), 401],
    ['revoked', bearer(revoked.token), 401],
    ['its hash', bearer(total), 401],
    ['in a cookie', [`Cookie: token=${token}`], 401],
    ['in other headers', [`X-Api-Key: ${token}`, `Proxy-Authorization: Bearer ${token}`], 401],
    [
      'in the query',
      [],
      401,
      `?token=${token}&access_token=${token}&authorization=Bearer%20${token}`,
    ],
    ['twice', [...bearer(token), ...bearer(token)], 403],
    ['wrong, then right', [...bearer('wrong'), ...bearer(token)], 403],
  ];
}

function matrix(served: Served): Case[] {
  const { port, token, tokens, server } = served;
  const host = `Host: 127.0.0.1:${port}`;
  const right = `Authorization: Bearer ${token}`;
  const chat = randomUUID();
  const scoped = `Authorization: Bearer ${tokens.create(`chat:${chat}`).token}`;
  const cases: Case[] = [];
  const wrongTokens = tokenCases(served);
  const add = (one: Case): void => void cases.push(one);
  // Without a token, too; the other rules are the same.
  const open = new Set([
    'GET /docs',
    'GET /docs/',
    'GET /docs/some-id',
    'GET /docs/some-id/',
    'GET /docs/some-id/some-id',
    'GET /openapi.json',
    'GET /readyz',
    'GET /',
    'GET /assets/some-id',
    'POST /v1/sessions',
    // Its first message shows the token.
    'GET /v1/watch',
    'GET /e2b/envd/health',
    'GET /e2b/t/some-id/health',
    // The address is signed.
    'GET /files',
    'POST /files',
  ]);
  /** E2B's clients show their token there. */
  const isKey = (name: string, target: string): boolean =>
    name === 'in other headers' && /^\/e2b\/(?!envd\/|t\/)/.test(target);
  for (const target of targetsOf(server.routes)) {
    for (const method of METHODS) {
      const at = { method, target };
      for (const [name, lines, status, parser] of hostCases(port))
        add({ ...at, name, lines: [...lines, right], status, ...(parser && { parser }) });
      for (const [name, lines] of originCases(port))
        add({ ...at, name, lines: [host, right, ...lines], status: 403 });
      for (const [name, lines, status, query = ''] of wrongTokens)
        if (!isKey(name, target) && (!open.has(`${method} ${target}`) || status === 403))
          add({ ...at, target: target + query, name, lines: [host, ...lines], status });
      for (const authority of ['evil.example', `127.0.0.1:${port}`])
        add({
          method,
          target: `http://${authority}${target}`,
          name: 'absolute form',
          lines: [host, right],
          status: 403,
        });
    }
    const upgrade = { method: 'GET', target };
    if (!open.has(`GET ${target}`))
      add({ ...upgrade, name: 'upgrade, no token', lines: [host, ...UPGRADE], status: 401 });
    add({
      ...upgrade,
      name: 'upgrade, evil Origin',
      lines: [host, right, ...UPGRADE, 'Origin: http://evil.example'],
      status: 403,
    });
    add({
      ...upgrade,
      name: 'upgrade, evil Host',
      lines: ['Host: evil.example', right, ...UPGRADE],
      status: 403,
    });
  }
  for (const row of server.routes.filter((route) => route.includes(PREFIX))) {
    const [method = '', target = ''] = row.replaceAll(/:\w+/g, 'some-id').split(' ');
    for (const header of [[], ['Coder-Chat-Id:'], [`Coder-Chat-Id: ${randomUUID()}`]])
      add({ method, target, name: 'foreign chat', lines: [host, scoped, ...header], status: 403 });
    add({
      method,
      target,
      name: 'two chats',
      lines: [host, scoped, `Coder-Chat-Id: ${chat}`, `Coder-Chat-Id: ${chat}`],
      status: 403,
    });
  }
  return cases;
}

function bytesOf({ method, target, lines }: Pick<Case, 'method' | 'target' | 'lines'>): string {
  return [`${method} ${target} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

describe('the matrix', () => {
  it('[G1] routes × methods × Host × Origin × tokens: every case is refused, and no handler is entered', async () => {
    const accesses: AccessEntry[] = [];
    const served = await fresh({ access: (entry) => accesses.push(entry) });
    const roll = dice(SEED);
    const cases = matrix(served).filter(() => isSlowRun || roll.chance(0.2));
    expect(cases.length).toBeGreaterThan(2000);
    const wrong: string[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      const connection = raw(served.port);
      for (let one = cases[next++]; one; one = cases[next++]) {
        const { status } = await connection.ask(bytesOf(one), one.method === 'HEAD');
        if (status !== one.status)
          wrong.push(`${one.name}: ${one.method} ${one.target}: ${status}, not ${one.status}`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(wrong).toEqual([]);
    const heard = cases.filter(({ parser }) => !parser).length;
    await turnsUntil(() => accesses.length === heard);
    expect(accesses.filter(({ route }) => route !== undefined)).toEqual([]);
    expect((await served.server.host.list('*', {})).total).toBe(0);
    expect(served.reports).toEqual([]);
    // Twelve thousand requests, or a fifth of them: a request that is let in and waits shows only at this end.
  }, 300_000);

  it('[G20] a loopback name is ours with any port, as tunnels choose it; another is refused with what would allow it', async () => {
    const served = await fresh({ allowHosts: ['box.example:*'] });
    const connection = raw(served.port);
    const ask = (name: string) =>
      connection.ask(
        bytesOf({
          method: 'GET',
          target: '/v1/health',
          lines: [`Host: ${name}`, `Authorization: Bearer ${served.token}`],
        }),
      );
    for (const name of ['127.0.0.1', 'localhost', '[::1]', 'box.example'])
      for (const port of ['', ':1', ':9000', ':65535'])
        expect([name, port, (await ask(name + port)).status]).toEqual([name, port, 200]);
    const refused = await ask('host.docker.internal:9000');
    expect(refused.status).toBe(403);
    expect(refused.body).toContain('`--allow-host host.docker.internal:9000`');
  });

  it('[G1] the same requests with everything right are let in', async () => {
    const served = await fresh();
    const connection = raw(served.port);
    const names = ['127.0.0.1', 'localhost', '[::1]'];
    for (const name of names) {
      const lines = [`Host: ${name}:${served.port}`, `Authorization: Bearer ${served.token}`];
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        const one = { method: 'GET', target: `${PREFIX}/list`, lines };
        const bytes = bytesOf(one).replace('Bearer', scheme);
        expect((await connection.ask(bytes)).status).toBe(200);
      }
      const upgrade = [...lines, ...UPGRADE];
      const one = { method: 'GET', target: `${PREFIX}/list`, lines: upgrade };
      expect((await connection.ask(bytesOf(one))).status).toBe(200);
    }
    const nowhere = [`Host: 127.0.0.1:${served.port}`, `Authorization: Bearer ${served.token}`];
    for (const method of METHODS) {
      const one = { method, target: '/nowhere', lines: nowhere };
      expect((await connection.ask(bytesOf(one), method === 'HEAD')).status).toBe(404);
    }
  });

  it('[G1] no answer has a CORS header, says what it runs on, or may be stored', async () => {
    const { client, port } = await fresh();
    const connection = raw(port);
    const lines = [`Host: 127.0.0.1:${port}`, 'Origin: http://evil.example'];
    const preflight = { method: 'OPTIONS', target: `${PREFIX}/list`, lines };
    const refused = await connection.ask(bytesOf(preflight));
    const allowed = await client.send('GET', `${PREFIX}/list`);
    for (const names of [[...refused.headers.keys()], Object.keys(allowed.headers)]) {
      expect(names.filter((name) => /^access-control|server|powered/.test(name))).toEqual([]);
      expect(names).toContain('cache-control');
      expect(names).toContain('x-content-type-options');
    }
  });
});

describe('pages', () => {
  it('[API60] of an allowed origin may ask with a token and read the answer; no other origin gets a header for that', async () => {
    const page = 'https://app.example';
    const served = await fresh({ origins: [page] });
    const connection = raw(served.port);
    const cors = async (method: string, target: string, ...lines: string[]) => {
      const all = [`Host: 127.0.0.1:${served.port}`, 'Sec-Fetch-Site: cross-site', ...lines];
      const { status, headers } = await connection.ask(bytesOf({ method, target, lines: all }));
      const ours = [...headers].filter(([name]) => /^(access-control|vary)/.test(name));
      return { status, ...Object.fromEntries(ours) };
    };
    const origin = `Origin: ${page}`;
    const token = `Authorization: Bearer ${served.token}`;
    const readable = {
      'access-control-allow-origin': page,
      'access-control-expose-headers': expect.stringContaining('Mcp-Session-Id'),
      vary: 'Origin',
    };
    const asks = [
      'Access-Control-Request-Method: POST',
      'Access-Control-Request-Headers: authorization,content-type',
    ];
    expect(await cors('OPTIONS', '/v1/processes', origin, ...asks)).toEqual({
      status: 204,
      ...readable,
      'access-control-allow-methods': 'POST, GET',
      'access-control-allow-headers': 'authorization,content-type',
      'access-control-max-age': '600',
    });
    // The preflight alone asks for no token, and lets nothing else in.
    expect(await cors('OPTIONS', '/v1/processes', origin)).toEqual({ status: 401, ...readable });
    expect(await cors('OPTIONS', '/nowhere', origin, ...asks)).toEqual({
      status: 404,
      ...readable,
    });
    expect(await cors('GET', '/v1/processes', origin)).toEqual({ status: 401, ...readable });
    const spec = { command: 'cat', stdin: 'pipe' } as const;
    const { id } = (await served.server.host.start('local', spec)).process;
    for (const path of ['/v1/processes', `/v1/processes/${id}`])
      expect(await cors('GET', path, origin, token)).toEqual({ status: 200, ...readable });
    // What the keeper answers is read by the page as well.
    const waiting = cors('POST', `/v1/processes/${id}/wait`, origin, token);
    await served.server.host.write('local', { id, eof: true });
    expect(await waiting).toEqual({ status: 200, ...readable });
    for (const other of ['https://app.example:8443', 'http://app.example', 'null', `${page}.evil`])
      for (const method of ['OPTIONS', 'GET'])
        expect(await cors(method, '/v1/processes', `Origin: ${other}`, token, ...asks)).toEqual({
          status: 403,
        });
    expect(await cors('GET', '/v1/processes', token)).toEqual({ status: 403 });
  });
});

describe('tokens', () => {
  it('[G2] an admin token is kept as a hash only; the plain one of an earlier version goes over by itself and stays valid', async () => {
    const home = temporaryFolder();
    const old = `hf_${'x'.repeat(43)}`;
    writeFileSync(join(home, 'token'), `${old}\n`, { mode: 0o600 });
    const served = await startServer({
      home,
      env: process.env,
      keeperArgs: ['--idle-ms', '60000'],
    });
    onCleanup(async () => {
      await served.close();
      await stopKeeper(home);
    });
    expect([served.tokenFile, existsSync(join(home, 'token'))]).toEqual([undefined, false]);
    const { token, info } = new Tokens(home, systemClock).createAdmin();
    const stored = readFileSync(join(home, 'tokens.json'), 'utf8');
    for (const each of [old, token]) {
      expect(stored).not.toContain(each.slice(3));
      const headers = { Authorization: `Bearer ${each}` };
      expect((await fetch(`${served.url}/metrics`, { headers })).status).toBe(200);
    }
    expect(new Tokens(home, systemClock).revoke(info.id)).toBe(true);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await fetch(`${served.url}/metrics`, { headers })).status).toBe(401);
  });

  it('[G2] where the hashes cannot be stored the old token stays as it is, and works', () => {
    const folder = temporaryFolder();
    const old = `hf_${'x'.repeat(43)}`;
    writeFileSync(join(folder, 'token'), old, { mode: 0o600 });
    writeFileSync(join(folder, 'tokens.json'), 'torn', { mode: 0o600 });
    const serving = (): Tokens => new Tokens(folder, systemClock, { adminFile: undefined });
    expect(serving().bearer(old)).toMatchObject({ owner: '*' });
    rmSync(join(folder, 'tokens.json'));
    expect(serving().bearer(old)).toMatchObject({ owner: '*' });
    expect(existsSync(join(folder, 'token'))).toBe(false);
  });

  it('[G2] a token file is made once, private whatever the umask, and used by all who start at once', () => {
    const folder = temporaryFolder();
    const file = join(folder, 'token');
    const made = (): Tokens => new Tokens(folder, systemClock, { adminFile: file });
    const [first, second] = [made(), made()];
    const token = readFileSync(file, 'utf8').trim();
    expect(token).toMatch(/^hf_[\w-]{43}$/);
    for (const each of [first, second])
      expect(each.bearer(token)).toEqual({ tokenId: 'admin', owner: '*' });
    first.create('chat:a');
    expect(readdirSync(folder).toSorted()).toEqual(['token', 'tokens.json', 'tokens.json.lock']);
    for (const name of readdirSync(folder))
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  });

  it('[G2] a token file that is empty, short or unreadable refuses the start; it never opens the door', async () => {
    for (const spoil of [
      (path: string) => writeFileSync(path, ''),
      (path: string) => writeFileSync(path, ' \n\n'),
      (path: string) => writeFileSync(path, 'short'),
      (path: string) => mkdirSync(path),
    ]) {
      const home = temporaryFolder();
      spoil(join(home, 'token'));
      const error = await failure(serve({ home }));
      expect(error.message).toMatch(/holds no secret|not a regular file/);
      expect(existsSync(join(home, 'server.sock'))).toBe(false);
    }
    if (process.getuid?.() === 0) return;
    const home = temporaryFolder();
    writeFileSync(join(home, 'token'), 'x'.repeat(64));
    chmodSync(join(home, 'token'), 0);
    expect((await failure(serve({ home }))).message).toMatch(/EACCES/);
  });

  it('[G3] a scoped token is stored only as a hash, expires, and can be revoked from another process', () => {
    const folder = temporaryFolder();
    const clock = new FakeClock();
    const [server, command] = [new Tokens(folder, clock), new Tokens(folder, clock)];
    const { token, info } = command.create('chat:a', 60_000);
    const { token: lasting } = command.create('chat:b');
    expect(server.bearer(token)).toEqual({ tokenId: info.id, owner: 'chat:a' });
    expect(readFileSync(join(folder, 'tokens.json'), 'utf8')).not.toContain(token.slice(3));
    expect(JSON.stringify(server.list())).not.toMatch(/sum|hf_/);
    clock.advance(60_000);
    expect(server.bearer(token)).toBeUndefined();
    expect(server.bearer(lasting)).toMatchObject({ owner: 'chat:b' });
    expect(command.list().map(({ id }) => command.revoke(id))).toEqual([true, true]);
    expect(server.bearer(lasting)).toBeUndefined();
    expect(command.revoke('unknown')).toBe(false);
    for (const owner of ['', '*']) expect(() => command.create(owner)).toThrow(/owner/);
  });

  it('[G3] tokens are compared by their hashes, in constant time', () => {
    const folder = temporaryFolder();
    const tokens = new Tokens(folder, systemClock, { adminFile: join(folder, 'secret') });
    tokens.create('chat:a');
    const admin = readFileSync(join(folder, 'secret'), 'utf8').trim();
    const other = `${admin.slice(0, -1)}${admin.endsWith('A') ? 'B' : 'A'}`;
    // Each twice, and after one that is good: what was shown last is remembered.
    for (const odd of ['', 'x', 'x'.repeat(100_000), '\0', '*', 'ü', other]) {
      expect(tokens.bearer(admin)).toMatchObject({ tokenId: 'admin' });
      expect([tokens.bearer(odd), tokens.bearer(odd)]).toEqual([undefined, undefined]);
    }
    const source = fileURLToPath(new URL('../../src/server/http/tokens.ts', import.meta.url));
    const text = readFileSync(source, 'utf8');
    expect(text.match(/timingSafeEqual\(/g)).toHaveLength(3);
    expect(text).not.toMatch(/(?:sum|token) ?===|=== ?(?:sum|token)\b/i);
  });

  it('[G3] a token is good until it is revoked, and its starts are limited', async () => {
    const served = await fresh({ startRate: { perSecond: 0.001, burst: 2 } });
    const chat = randomUUID();
    const { token, info } = served.tokens.create(`chat:${chat}`);
    const headers = { authorization: `Bearer ${token}`, 'coder-chat-id': chat };
    const scoped = served.client.with(headers);
    const start = async (): Promise<number> =>
      (await scoped.call('POST', '/start', { command: 'true' })).status;
    expect([await start(), await start(), await start()]).toEqual([200, 200, 429]);
    expect((await scoped.call('GET', '/list')).status).toBe(200);
    served.tokens.revoke(info.id);
    expect((await scoped.call('GET', '/list')).status).toBe(401);
  });
});

describe('doors', () => {
  it('[G4] an address that others can reach is refused without an explicit word, and never without tokens', async () => {
    for (const address of ['0.0.0.0', '::', '192.0.2.1', '2001:db8::1', '::ffff:127.0.0.1'])
      for (const more of [{}, { openToAll: true }, { openToAll: true, allowRemote: true }])
        expect(await failure(serve({ home: temporaryFolder(), address, ...more }))).toMatchObject({
          code: 'forbidden',
        });
    for (const address of ['example.com', '', 'localhost.evil', '127.0.0.1.evil.example'])
      expect(await failure(serve({ home: temporaryFolder(), address }))).toMatchObject({
        code: 'invalid_input',
      });
  });

  it('[G4] bound to every address, by choice, it answers to numbers that are its own and to nothing else', async () => {
    const { port, token } = await fresh({ address: '0.0.0.0', allowRemote: true });
    const connection = raw(port);
    const status = async (host: string): Promise<number> => {
      const lines = [`Host: ${host}:${port}`, `Authorization: Bearer ${token}`];
      const one = { method: 'GET', target: `${PREFIX}/list`, lines };
      return (await connection.ask(bytesOf(one))).status;
    };
    const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    const numbers = own.filter(({ family }) => family === 'IPv4').map(({ address }) => address);
    for (const host of ['localhost', '127.0.0.1', ...numbers]) expect(await status(host)).toBe(200);
    for (const host of ['evil.example', '0.0.0.0', '192.0.2.1', '127.0.0.2'])
      expect(await status(host)).toBe(403);
  });

  it('[G4] without tokens, by choice and on loopback, Host and Origin are looked at all the same', async () => {
    const { port, client } = await fresh({ openToAll: true });
    const connection = raw(port);
    const status = async (...lines: string[]): Promise<number> =>
      (await connection.ask(bytesOf({ method: 'GET', target: `${PREFIX}/list`, lines }))).status;
    expect(await status(`Host: 127.0.0.1:${port}`)).toBe(200);
    expect(await status('Host: evil.example')).toBe(403);
    expect(await status(`Host: 127.0.0.1:${port}`, 'Origin: null')).toBe(403);
    const wrong = client.with({ authorization: 'Bearer wrong' });
    expect((await wrong.call('GET', '/list')).status).toBe(401);
  });

  it('[G5] the socket in the private home needs no token; one elsewhere does; both are private', async () => {
    const elsewhere = join(temporaryFolder(), 'server.sock');
    const [near, far] = [await fresh(), await fresh({ socket: elsewhere })];
    const agent = new Agent();
    onCleanup(() => agent.destroy());
    const status = (socketPath: string, headers: Record<string, string> = {}): Promise<number> =>
      new Promise((resolve, reject) => {
        const asked = request({ socketPath, path: `${PREFIX}/list`, headers, agent });
        asked.on('response', (response) => {
          response.resume();
          response.on('end', () => resolve(response.statusCode ?? 0));
        });
        asked.on('error', reject);
        asked.end();
      });
    const home = near.server.socket ?? '';
    expect(home).toBe(join(near.home, 'server.sock'));
    expect(await status(home)).toBe(200);
    expect(await status(home, { authorization: 'Bearer wrong' })).toBe(401);
    expect(await status(home, { origin: 'http://evil.example' })).toBe(403);
    expect(await status(elsewhere)).toBe(401);
    expect(await status(elsewhere, { authorization: `Bearer ${near.token}` })).toBe(401);
    expect(await status(elsewhere, { authorization: `Bearer ${far.token}` })).toBe(200);
    for (const path of [home, elsewhere]) expect(lstatSync(path).mode & 0o777).toBe(0o600);
    const none = await fresh({ socket: 'none' });
    expect(none.server.socket).toBeUndefined();
  });

  it('[G6] a wrong token is refused before the body is asked for, read or parsed', async () => {
    const { port, token } = await fresh();
    const connection = raw(port);
    const post = (bearer: string, ...more: string[]): string =>
      bytesOf({
        method: 'POST',
        target: `${PREFIX}/start`,
        lines: [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${bearer}`, ...more],
      });
    // Not one byte of the body is sent: the answer comes all the same.
    const huge = await connection.ask(post('wrong', 'Content-Length: 1000000000'));
    expect([huge.status, huge.headers.get('connection')]).toEqual([401, 'close']);
    const expecting = ['Content-Length: 18', 'Expect: 100-continue'];
    expect(await connection.ask(post('wrong', ...expecting))).toMatchObject({
      status: 401,
      interim: [],
    });
    // The right one: asked for, within bounds.
    connection.write(post(token, ...expecting));
    connection.write('{"command":"true"}');
    expect(await connection.answer()).toMatchObject({ status: 200, interim: [100] });
    const tooLarge = await connection.ask(post(token, 'Content-Length: 4194305'));
    expect([tooLarge.status, tooLarge.interim]).toEqual([413, []]);
    connection.write(post(token, 'Transfer-Encoding: chunked'));
    for (let n = 0; n < 65; n += 1) connection.write(`10000\r\n${'x'.repeat(65_536)}\r\n`);
    expect((await connection.answer()).status).toBe(413);
  });

  it('[G6] a client that sends a large body without waiting still reads its refusal', async () => {
    const { port, token } = await fresh();
    const body = Buffer.alloc(4_194_305, 'x');
    const json = { 'Content-Type': 'application/json' };
    const headers = { ...json, Authorization: `Bearer ${token}`, 'Content-Length': body.length };
    const statuses: (number | undefined)[] = [];
    for (let n = 0; n < 10; n += 1) {
      const asked = request({ port, path: '/v1/run', method: 'POST', headers, agent: false });
      asked.end(body);
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      // Whatever the connection does when it has been answered.
      asked.on('error', () => undefined);
      statuses.push(answer.statusCode);
      await once(answer.resume(), 'end');
    }
    expect(statuses).toEqual(Array<number>(10).fill(413));
  });

  it('[G6] a body of the wrong type is refused without being read', async () => {
    const { port, token } = await fresh();
    const lines = [
      `Host: 127.0.0.1:${port}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: text/plain',
      'Content-Length: 1000',
    ];
    const one = { method: 'POST', target: `${PREFIX}/start`, lines };
    expect((await raw(port).ask(bytesOf(one))).status).toBe(415);
  });

  it('[G7] who sends headers or a body slowly, or nothing, is cut off', async () => {
    const echo: Route = { method: 'POST', path: '/x', handler: async ({ body }) => body.length };
    const patience = { headers: 100, request: 200, idle: 100, check: 10 };
    const { port } = await openDoor([echo], { patience });
    const head = `POST /x HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer full\r\n`;
    const [silent, slowHead, slowBody, idle] = [raw(port), raw(port), raw(port), raw(port)];
    expect((await silent.ask('')).status).toBe(408);
    expect((await slowHead.ask(head)).status).toBe(408);
    const body = `${head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{`;
    expect((await slowBody.ask(body)).status).toBe(408);
    expect((await idle.ask(`${head}\r\n`)).status).toBe(200);
    await idle.ended();
    const options = { kind: 'tcp', maxBodyBytes: 1, report: () => undefined } as const;
    const policy = { hosts: new Set(''), origins: new Set(''), bearer: () => undefined };
    const door = createDoor({
      ...options,
      router: new Router([]),
      policy,
    });
    expect(door).toMatchObject({
      headersTimeout: 10_000,
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      timeout: 0,
      maxConnections: 20_000,
    });
  });

  it('[G7] headers beyond 16 KiB are refused, and what is no HTTP ends its connection only', async () => {
    const { port, client } = await fresh();
    const big = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`;
    expect((await raw(port).ask(big)).status).toBe(431);
    expect((await raw(port).ask('\x16\x03\x01 nonsense\r\n\r\n')).status).toBe(400);
    expect((await raw(port).ask('CONNECT evil:443 HTTP/1.1\r\nHost: evil\r\n\r\n')).status).toBe(0);
    expect((await client.call('GET', '/list')).status).toBe(200);
  });
});

/** Everything below a folder that others than its owner could access. */
function loose(folder: string): string[] {
  const modes = lookBelow(folder, (path) => ({ path, mode: lstatSync(path).mode & 0o777 }));
  return modes
    .filter(({ mode }) => (mode & 0o077) !== 0)
    .map(({ path, mode }) => `${path} ${mode.toString(8)}`);
}

/** Sockets of a process that have no path in the file system: every user could connect to them. */
function abstractSockets(pid: number): string[] {
  const inodes = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      return [];
    }
  });
  return readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , , , , inode = '', path = '']) => path.startsWith('@') && inodes.includes(inode))
    .map(([, , , , , , , path = '']) => path);
}

describe('what is left lying about', () => {
  it('[G8] under umask 000 nothing in the home has a bit for others, and no socket is abstract', async () => {
    expect(process.umask()).toBe(0);
    const served = await fresh();
    const { client, tokens, home, server } = served;
    tokens.create('chat:a');
    await client.run('seq 1 50000');
    await client.run({ command: 'true', idempotency_key: 'k' });
    await client.call('POST', '/start', { command: 'true', workdir: '/nowhere' });
    const running = await client.start('sleep 300');
    expect(loose(home)).toEqual([]);
    expect(lstatSync(home).mode & 0o777).toBe(0o700);
    for (const pid of [process.pid, server.keeperPid]) expect(abstractSockets(pid)).toEqual([]);
    await client.signal(running, 'kill');
  });

  it('[G9] secrets are found only where they are documented to be', async () => {
    const accesses: AccessEntry[] = [];
    const served = await fresh({
      env: { ...process.env, HOST_SECRET: 'canary-host-env' },
      access: (entry) => accesses.push(entry),
    });
    const { home, token, reports, server } = served;
    const chat = randomUUID();
    const scoped = served.tokens.create(`chat:${chat}`).token;
    const client = served.chat(chat).with({
      cookie: 'session=canary-cookie',
      'x-secret': 'canary-header',
      'coder-ancestor-chat-ids': '["canary-ancestor"]',
    });
    const said: string[] = [];
    const tell = async (method: string, path: string, body?: unknown): Promise<string> => {
      const { text } = await client.send(method, path, body);
      said.push(text);
      return text;
    };
    const spec = {
      command: ': canary-argv; test -n "$SECRET" && test -n "$HOST_SECRET"',
      env: { SECRET: 'canary-env' },
      idempotency_key: 'canary-key',
      unknown: 'canary-unknown-field',
    };
    const { id } = JSON.parse(await tell('POST', `${PREFIX}/start`, spec)) as { id: string };
    expect(await tell('GET', `${PREFIX}/${id}/output?wait=true&q=canary-query`)).toContain(
      '"exit_code":0',
    );
    // Every way in which a request with a secret fails.
    await tell('POST', `${PREFIX}/start`, { ...spec, env: { SECRET: 'canary-env-other' } });
    await tell('POST', `${PREFIX}/start`, { command: 'x', env: { SECRET: 'canary-env\0' } });
    await tell('POST', `${PREFIX}/start`, { command: 'x', env: { SECRET: ['canary-env'] } });
    await tell('POST', `${PREFIX}/start`, { ...spec, idempotency_key: '', workdir: '/nowhere' });
    await tell('POST', `${PREFIX}/start`, '{"env":{"SECRET":canary-env-bare}}');
    await tell('POST', `${PREFIX}/start`, '{"env":{"SECRET":"canary-env-cut');
    await tell('GET', `${PREFIX}/list?token=canary-query`);
    for (const authorization of ['Bearer canary-wrong-token', 'Basic canary-basic'])
      said.push((await client.with({ authorization }).send('GET', `${PREFIX}/list`)).text);
    said.push(
      (
        await client
          .with({ authorization: `Bearer ${scoped}`, 'coder-chat-id': 'canary-chat-id' })
          .send('GET', `${PREFIX}/list`)
      ).text,
    );
    const { process: reader } = await server.host.start('*', {
      command: 'cat > /dev/null',
      stdin: 'pipe',
    });
    const data = Buffer.from('canary-stdin');
    await server.host.write('*', { id: reader.id, data, eof: true });
    await server.host.wait('*', { waits: [{ id: reader.id, for: [{ kind: 'closed' }] }] });

    const files = lookBelow(home, (path) => ({
      place: path.slice(home.length + 1).split('/')[0] ?? '',
      content: lstatSync(path).isFile() ? readFileSync(path) : Buffer.alloc(0),
    }));
    const onDisk = (text: string): string[] =>
      files.filter(({ content }) => content.includes(text)).map(({ place }) => place);
    const inAnswers = (text: string): boolean => said.some((answer) => answer.includes(text));
    const inLogs = (text: string): boolean =>
      JSON.stringify([accesses, reports, readFileSync(join(home, 'keeper.log'), 'utf8')]).includes(
        text,
      );
    // Documented: the command and the key are part of what is known of a process.
    expect(new Set(onDisk('canary-argv'))).toEqual(new Set(['journals', 'feed']));
    expect(new Set(onDisk('canary-key'))).toEqual(new Set(['journals']));
    expect([inAnswers('canary-argv'), inAnswers('canary-key')]).toEqual([true, true]);
    expect([inLogs('canary-argv'), inLogs('canary-key')]).toEqual([false, false]);
    for (const secret of [
      'canary-env',
      'canary-host-env',
      'canary-unknown-field',
      'canary-stdin',
      'canary-query',
      'canary-cookie',
      'canary-header',
      'canary-ancestor',
      'canary-wrong-token',
      'canary-basic',
      'canary-chat-id',
      scoped.slice(3),
    ])
      expect([secret, onDisk(secret), inAnswers(secret), inLogs(secret)]).toEqual([
        secret,
        [],
        false,
        false,
      ]);
    expect([onDisk(token), inAnswers(token), inLogs(token)]).toEqual([['token'], false, false]);
    const argvs = [process.pid, server.keeperPid].map((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
    );
    expect(argvs.join(' ')).not.toMatch(/hf_|canary/);
  });
});

describe('unproven', () => {
  const echo: Route = { method: 'GET', path: '/x', handler: async () => ({ ok: true }) };

  it('[SV13] connections without a valid token do not crowd out others: the one longest here goes', async () => {
    const unproven = { softLimit: 3, patienceMs: 0, hardLimit: 10 };
    const { port, client } = await openDoor([echo], { unproven });
    const head = `GET /x HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`;
    const known = raw(port);
    const ask = `${head}Authorization: Bearer full\r\n\r\n`;
    expect((await known.ask(ask)).status).toBe(200);
    const refused = raw(port);
    expect((await refused.ask(`${head}Authorization: Bearer wrong\r\n\r\n`)).status).toBe(401);
    const silent = Array.from({ length: 3 }, () => raw(port));
    for (const one of silent) one.write('G');
    await refused.ended();
    const others = Array.from({ length: 3 }, () => raw(port));
    for (const one of others) one.write('G');
    await Promise.all(silent.map((one) => one.ended()));
    expect((await known.ask(ask)).status).toBe(200);
    expect((await client.send('GET', '/x')).status).toBe(200);
  });

  it('[SV13] a burst of honest callers is let in, up to a bound that always holds', async () => {
    const clock = new FakeClock();
    const unproven = new UnprovenConnections(clock, {
      softLimit: 2,
      patienceMs: 1000,
      hardLimit: 4,
    });
    const sockets = Array.from({ length: 6 }, () => new Socket());
    for (const socket of sockets.slice(0, 4)) unproven.add(socket);
    expect(unproven.count).toBe(4);
    unproven.add(sockets[4] as Socket);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([
      true,
      false,
      false,
      false,
      false,
      false,
    ]);
    unproven.markProven(sockets[1] as Socket);
    clock.advance(1000);
    unproven.add(sockets[5] as Socket);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([
      true,
      false,
      true,
      true,
      false,
      false,
    ]);
    expect(unproven.count).toBe(2);
    for (const socket of sockets) socket.destroy();
  });

  it('[SV14] no header that decides anything is taken twice', async () => {
    const { port, token } = await fresh();
    for (const line of ['Holdfast-Owner: a', 'Last-Event-ID: 1', 'Sec-Fetch-Site: none']) {
      const head = `GET /v1/processes HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`;
      expect((await raw(port).ask(`${head}${line}\r\n\r\n`)).status).toBe(200);
      const twice = await raw(port).ask(`${head}${line}\r\n${line}\r\n\r\n`);
      expect({ line, status: twice.status }).toEqual({ line, status: 403 });
    }
  });

  it('[SV14] a name that a proxy uses is answered when it is allowed, exactly as it is written', async () => {
    const { port, token } = await fresh({ allowHosts: ['holdfast.example', 'other.example:8443'] });
    const status = async (host: string): Promise<number> => {
      const lines = `Host: ${host}\r\nAuthorization: Bearer ${token}\r\n`;
      return (await raw(port).ask(`GET /v1/health HTTP/1.1\r\n${lines}\r\n`)).status;
    };
    for (const host of ['holdfast.example', 'other.example:8443', `127.0.0.1:${port}`])
      expect({ host, status: await status(host) }).toEqual({ host, status: 200 });
    for (const host of ['holdfast.example:80', 'other.example', 'x.holdfast.example', 'example'])
      expect({ host, status: await status(host) }).toEqual({ host, status: 403 });
    for (const host of ['*', '*.example', 'a b', 'http://x', 'UPPER.example', ''])
      expect(await failure(serve({ home: temporaryFolder(), allowHosts: [host] }))).toMatchObject({
        code: 'invalid_input',
      });
  });

  it('[SV15] the access log has the code of every refusal, whatever the dialect, and what was no request', async () => {
    const entries: AccessEntry[] = [];
    const { client, port } = await fresh({ access: (entry) => entries.push(entry) });
    await client.call('GET', '/nosuch/output');
    await client.call('POST', '/start', { command: '' });
    await client.call('POST', '/start', { command: 'x', workdir: '/nosuch' });
    const ended = await client.start('true');
    await client.wait(ended);
    await turnsUntil(() => entries.length === 5);
    await client.signal(ended, 'kill');
    await client.call('POST', '/start', { command: ':', idempotency_key: 'k' });
    await client.call('POST', '/start', { command: 'other', idempotency_key: 'k' });
    await raw(port).ask('nonsense\r\n\r\n');
    await turnsUntil(() => entries.length === 9);
    expect(entries.map(({ refusal }) => refusal)).toEqual([
      'not_found',
      'invalid_input',
      'cwd_not_found',
      undefined,
      undefined,
      'not_running',
      undefined,
      'key_conflict',
      undefined,
    ]);
    expect(entries[8]).toEqual({ method: '-', path: '-', status: 400, ms: 0 });
  });
});
