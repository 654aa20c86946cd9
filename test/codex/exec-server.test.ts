// The drop-in exec-server: who may connect, and the same protocol on the lines of stdin and stdout.

import { spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '../../src/base/clock.ts';
import {
  listenExecServer,
  serveExecServerStdio,
  type ListenOptions,
} from '../../src/server/codex/exec-server.ts';
import { LineWire } from '../../src/server/codex/wire/line-wire.ts';
import { wsAuth } from '../../src/server/codex/ws-auth.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { CodexClient, ENV } from '../support/codex-client.ts';
import { failure, onCleanup, stopKeeper, temporaryFolder } from '../support/hosts.ts';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

async function listening(auth: ListenOptions['auth'], more: Partial<ListenOptions> = {}) {
  const home = more.home ?? temporaryFolder();
  const server = await listenExecServer({
    home,
    env: process.env,
    cwd: '/',
    report: (message) => {
      throw new Error(message);
    },
    listen: 'ws://127.0.0.1:0',
    auth,
    keeperArgs: ['--idle-ms', '60000'],
    ...more,
  });
  onCleanup(async () => {
    await server.close();
    await stopKeeper(home);
  });
  return { ...server, home };
}

/** 101 when it was opened, else the status. */
function opened(url: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, { headers });
    socket.once('unexpected-response', (_request, response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    socket.once('open', () => {
      socket.terminate();
      resolve(101);
    });
    socket.once('error', () => undefined);
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('who may connect', () => {
  it('[CX4] it makes a token of its own, private and the same the next time, and asks for it', async () => {
    // 6
    const { url, home } = await listening({ kind: 'own' });
    const token = readFileSync(join(home, 'exec-server.token'), 'utf8').trim();
    expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/\?token=hf_[\w-]{43}$/);
    expect(url.endsWith(token)).toBe(true);
    expect(statSync(join(home, 'exec-server.token')).mode & 0o777).toBe(0o600);
    const [bare = ''] = url.split('/?');
    expect(await opened(url)).toBe(101);
    expect(await opened(bare, bearer(token))).toBe(101);
    expect(await opened(bare)).toBe(401);
    expect(await opened(`${bare}/?token=x`)).toBe(401);
    expect(await opened(`${bare}/other`, bearer(token))).toBe(404);
    expect(await opened(url, { origin: 'http://127.0.0.1' })).toBe(403);
    expect(await opened(url, { host: 'evil.example' })).toBe(403);
    // A tunnel may end at another port.
    expect(await opened(url, { host: '127.0.0.1:1' })).toBe(101);
    const again = await listening({ kind: 'own' }, { home });
    expect(again.url.endsWith(token)).toBe(true);
    const http = bare.replace('ws:', 'http:');
    expect(await get(`${http}/readyz`)).toEqual([200, '']);
    expect((await get(`${http}/readyz`, { origin: 'http://x' }))[0]).toBe(403);
    expect((await get(`${http}/healthz`))[0]).toBe(401);
    expect((await get(`${http}/`, bearer(token)))[0]).toBe(400);
  });

  it('[CX4] a capability token is given as a file or as its hash', async () => {
    const file = join(temporaryFolder(), 'token');
    writeFileSync(file, 'secret-token\n');
    const tokenSha256 = createHash('sha256').update('secret-token').digest('hex');
    for (const auth of [
      { kind: 'capability-token', tokenFile: file } as const,
      { kind: 'capability-token', tokenSha256 } as const,
    ]) {
      const { url } = await listening(auth);
      expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+$/);
      expect(await opened(url, bearer('secret-token'))).toBe(101);
      expect(await opened(`${url}/?token=secret-token`)).toBe(101);
      expect(await opened(url, bearer('secret-tokem'))).toBe(401);
    }
    const { url } = await listening({ kind: 'none' });
    expect(await opened(url)).toBe(101);
  });

  it('[CX60] who needs no token sees no more than who has one: not the state directory', async () => {
    const seen = async (auth: ListenOptions['auth']): Promise<unknown> => {
      const { url, home } = await listening(auth);
      const secret = join(home, 'secret');
      writeFileSync(secret, 'x');
      const client = await CodexClient.ready(url);
      const { code, message } = await client.refusal('fs/readFile', { path: `file://${secret}` });
      return { code, message: message.replace(home, '') };
    };
    expect(await seen({ kind: 'none' })).toEqual(await seen({ kind: 'own' }));
  });

  it('[CX4] a signed token is held against secret, algorithm, times, issuer and audience', () => {
    const file = join(temporaryFolder(), 'secret');
    const secret = 's'.repeat(32);
    writeFileSync(file, secret);
    const now = Math.floor(Date.now() / 1000);
    const auth = wsAuth(
      {
        kind: 'signed-bearer-token',
        sharedSecretFile: file,
        issuer: 'me',
        audience: 'you',
        maxClockSkewSeconds: 5,
      },
      '',
      systemClock,
    );
    const good = { exp: now + 60, iss: 'me', aud: 'you' };
    const passes = (claims: unknown, key = secret, alg = 'HS256'): boolean => {
      const body = [{ alg }, claims]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
      const signature = createHmac('sha256', key).update(body).digest('base64url');
      return auth.bearer(`${body}.${signature}`) !== undefined;
    };
    expect(passes(good)).toBe(true);
    expect(passes({ ...good, aud: ['a', 'you'] })).toBe(true);
    expect(passes({ ...good, exp: now - 3 })).toBe(true);
    const bad = [
      { ...good, exp: now - 6 },
      { ...good, exp: undefined },
      { ...good, exp: String(now + 60) },
      { ...good, nbf: now + 60 },
      { ...good, iss: 'other' },
      { ...good, aud: 'other' },
      [],
    ];
    expect(bad.filter((claims) => passes(claims))).toEqual([]);
    expect(passes(good, 'x'.repeat(32))).toBe(false);
    expect(passes(good, secret, 'none')).toBe(false);
    for (const text of [
      '',
      'a.b',
      'a.b.c',
      'a.b.c.d',
      `${Buffer.from('{"alg":"HS256"}').toString('base64url')}..`,
    ])
      expect(auth.bearer(text)).toBeUndefined();
  });

  it('[CX4] flags that do not go together, weak secrets and open addresses are refused', async () => {
    const file = join(temporaryFolder(), 'short');
    writeFileSync(file, 'short');
    const wrong: ListenOptions['auth'][] = [
      { kind: 'capability-token' },
      { kind: 'capability-token', tokenFile: file, tokenSha256: '0'.repeat(64) },
      { kind: 'capability-token', tokenSha256: 'xyz' },
      { kind: 'own', tokenFile: file },
      { kind: 'own', issuer: 'x' },
      { kind: 'signed-bearer-token' },
      { kind: 'signed-bearer-token', sharedSecretFile: file },
      { kind: 'signed-bearer-token', sharedSecretFile: file, tokenFile: file },
    ];
    for (const auth of wrong)
      expect(await failure(listening(auth))).toMatchObject({ code: 'invalid_input' });
    for (const listen of [
      'ws://localhost:0',
      'unix:/x',
      'ws://127.0.0.1',
      'ws://127.0.0.1:99999',
      'wss://127.0.0.1:0',
    ])
      expect(await failure(listening({ kind: 'own' }, { listen }))).toMatchObject({
        code: 'invalid_input',
      });
    expect(await failure(listening({ kind: 'own' }, { listen: 'ws://0.0.0.0:0' }))).toMatchObject({
      code: 'forbidden',
    });
    const open = { listen: 'ws://0.0.0.0:0', allowRemote: true };
    expect(await failure(listening({ kind: 'none' }, open))).toMatchObject({ code: 'forbidden' });
    const { url } = await listening({ kind: 'own' }, open);
    expect(await opened(url.replace('0.0.0.0', '127.0.0.1'))).toBe(101);
  });

  it('[CX5] asked for one request at a time, it answers them in their order', async () => {
    // 12
    const { url } = await listening({ kind: 'own' }, { serial: true });
    const client = await CodexClient.ready(url);
    await client.start('s', ['sleep', '600']);
    void client.read('s', { waitMs: 100 });
    void client.call('process/list');
    await client.start('t', ['true']);
    const ids = client.raw
      .filter((text) => text.includes('"result"'))
      .map((text) => (JSON.parse(text) as { id: number }).id);
    expect(ids).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('on stdin and stdout', () => {
  it('[CX20] it speaks in lines, skips empty ones, and ends its processes with its input', async () => {
    // 21
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const child = spawn(
      process.execPath,
      [main, 'exec-server', '--home', home, '--listen', 'stdio'],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    const lines: string[] = [];
    let rest = '';
    child.stdout.on('data', (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    });
    const start = {
      processId: 'p',
      argv: ['sh', '-c', 'echo $$; sleep 600'],
      cwd: 'file:///',
      env: ENV,
      tty: false,
    };
    child.stdin.write(
      '{"id":1,"method":"initialize","params":{"clientName":"x"}}\n\n\r\nnot-json\r\n{"method":"initialized"}\n',
    );
    child.stdin.write(`${JSON.stringify({ id: 2, method: 'process/start', params: start })}\r\n`);
    while (!lines.some((line) => line.includes('process/output'))) await once(child.stdout, 'data');
    expect(lines.slice(0, 2)).toEqual([
      expect.stringMatching(/^{"id":1,"result":{"sessionId":/),
      expect.stringMatching(
        /^{"error":{"code":-32600,"message":"failed to parse JSON-RPC message from exec-server stdio: .*"},"id":-1}$/,
      ),
    ]);
    const { chunk } = (
      JSON.parse(lines.find((line) => line.includes('process/output')) ?? '') as {
        params: { chunk: string };
      }
    ).params;
    const pid = Number(Buffer.from(chunk, 'base64').toString());
    expect(process.kill(pid, 0)).toBe(true);
    child.stdin.end();
    expect(await once(child, 'exit')).toEqual([0, null]);
    const link = await connectKeeper({ home, env: process.env });
    const { met } = await link.wait('*', { waits: [{ id: 'p', for: [{ kind: 'settled' }] }] });
    expect(met[0]?.process.outcome).toMatchObject({ kind: 'signal', by: 'lease ran out' });
    await link.close();
  });

  it('[CX20] a line may be 64 MiB long, with either line end, and no longer', () => {
    const limit = 64 * 1024 * 1024;
    const heard = (line: string, end: string): (number | 'over')[] => {
      const input = new PassThrough();
      const got: (number | 'over')[] = [];
      void new LineWire(input, new PassThrough(), {
        received: (text) => got.push(text.length),
        ended: () => got.push('over'),
      });
      input.emit('data', Buffer.from(line.slice(0, 1000)));
      input.emit('data', Buffer.from(line.slice(1000) + end));
      return got;
    };
    const exact = 'x'.repeat(limit);
    expect(heard(exact, '\n')).toEqual([limit]);
    expect(heard(exact, '\r\n')).toEqual([limit]);
    expect(heard(`${exact}x`, '\n')).toEqual(['over']);
    expect(heard(`${exact}xx`, '')).toEqual(['over']);
  });

  it('[CX20] lines may be cut anywhere', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const [input, output] = [new PassThrough(), new PassThrough()];
    let said = '';
    output.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const speaking = serveExecServerStdio(
      {
        home,
        env: process.env,
        cwd: '/',
        report: () => undefined,
        keeperArgs: ['--idle-ms', '60000'],
      },
      input,
      output,
    );
    for (const letter of '{"id":"ü","method":"nope/nope"}\n{"id":2,"method":"nope/nope"}\n') {
      for (const byte of Buffer.from(letter)) input.write(Buffer.of(byte));
    }
    while (said.split('\n').length < 3) await once(output, 'data');
    expect(said.split('\n').map((line) => line.slice(-10))).toEqual(
      ['},"id":"ü"}', ' yet"},"id":2}', ''].map((line) => line.slice(-10)),
    );
    input.end();
    await speaking;
  });
});

function get(url: string, headers: Record<string, string> = {}): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    request(url, { headers, agent: false }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve([response.statusCode ?? 0, body]));
    })
      .once('error', reject)
      .end();
  });
}
