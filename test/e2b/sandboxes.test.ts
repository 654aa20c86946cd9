// The control plane with the unmodified E2B SDK, who may do what, and what is refused.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { assert, asyncProperty, uint8Array } from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { problem, serveE2b, type E2bServed } from '../support/e2b-client.ts';
import { sized } from '../support/slow.ts';

let served: E2bServed;
let home: string;

beforeAll(async () => {
  served = await serveE2b();
  home = mkdtempSync(join(tmpdir(), 'holdfast-e2b-'));
  process.env['HOME'] = home;
});

afterAll(async () => {
  await served.stop();
  rmSync(home, { recursive: true, force: true });
});

function framed(message: unknown, flags = 0): Buffer {
  const json = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
}

async function post(
  path: string,
  headers: Record<string, string>,
  body: Uint8Array | string,
): Promise<{ status: number; text: string }> {
  const response = await fetch(`${served.server.url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/connect+json', ...headers },
    body: Buffer.from(body),
  });
  return { status: response.status, text: await response.text() };
}

const START = '/e2b/envd/process.Process/Start';
const TRUE = framed({ process: { cmd: '/bin/true' } });

describe('a sandbox', () => {
  it('[E220] is made, found by others, described, listed, and killed with everything in it', async () => {
    const made = await served.create({ metadata: { user: 'ann & co' }, timeoutMs: 60_000 });
    const handle = await made.commands.run('exec sleep 600', { background: true, timeoutMs: 0 });
    const waiting = problem(handle.wait());
    const found = await Sandbox.connect(made.sandboxId, served.options);
    expect(await found.commands.list()).toMatchObject([{ pid: handle.pid }]);
    const info = await made.getInfo();
    expect(info).toMatchObject({ state: 'running', metadata: { user: 'ann & co' } });
    const query = { metadata: { user: 'ann & co' } };
    const listed = await Sandbox.list({ ...served.options, query }).nextItems();
    expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([made.sandboxId]);
    const other = { metadata: { user: 'bob' } };
    expect(await Sandbox.list({ ...served.options, query: other }).nextItems()).toEqual([]);
    await made.setTimeout(3_600_000);
    expect((await made.getInfo()).endAt.getTime()).toBeGreaterThan(
      info.endAt.getTime() + 3_000_000,
    );
    expect([await made.isRunning(), await made.kill(), await made.isRunning()]).toEqual([
      true,
      true,
      false,
    ]);
    const ended = await waiting;
    expect(ended.name).toBe('TimeoutError');
    expect(ended.message).toContain('sandbox was killed');
    expect((await problem(made.commands.run('true'))).name).toBe('SandboxNotFoundError');
    expect(await made.kill()).toBe(false);
  });

  it('[E221] sees no process of another, and its token opens no other', async () => {
    const [one, two] = await Promise.all([served.create(), served.create()]);
    const handle = await one.commands.run('exec sleep 600', { background: true, timeoutMs: 0 });
    expect(await two.commands.list()).toEqual([]);
    expect(await two.commands.kill(handle.pid)).toBe(false);
    expect((await problem(two.commands.connect(handle.pid))).name).toBe('NotFoundError');
    const { envdAccessToken } = two as unknown as { envdAccessToken: string };
    const crossed = await post(
      START,
      { 'X-Access-Token': envdAccessToken, 'E2b-Sandbox-Id': one.sandboxId },
      TRUE,
    );
    expect(crossed.status).toBe(404);
    await Promise.all([one.kill(), two.kill()]);
  });

  it('[E221] of one token is not found by another', async () => {
    const [ann, bob] = ['ann', 'bob'].map((owner) => served.tokens.create(owner).token);
    const made = await Sandbox.create({ ...served.options, apiKey: ann ?? '' });
    const asBob = { ...served.options, apiKey: bob ?? '' };
    expect((await problem(Sandbox.connect(made.sandboxId, asBob))).name).toBe(
      'SandboxNotFoundError',
    );
    expect(await Sandbox.list(asBob).nextItems()).toEqual([]);
    expect(await Sandbox.kill(made.sandboxId, asBob)).toBe(false);
    expect(await made.kill()).toBe(true);
  });

  it('[E222] ends with its time: the keeper ends its processes', async () => {
    const made = await served.create({ timeoutMs: 60_000 });
    const handle = await made.commands.run('exec sleep 600', { background: true, timeoutMs: 0 });
    await made.setTimeout(1000);
    const ended = await problem(handle.wait());
    expect(ended.message).toContain('end of life');
    const link = await connectKeeper({ home: served.home, env: {}, startIfMissing: false });
    const { processes } = await link.list(`e2b:${made.sandboxId}`, {});
    expect(processes.map(({ state }) => state)).not.toContain('running');
    await link.close();
  });

  it('[E229] that is to pause at the end of its time can be connected to again, with its files and without its processes', async () => {
    const made = await served.create({ lifecycle: { onTimeout: 'pause' }, timeoutMs: 60_000 });
    await made.files.write('kept.txt', 'kept');
    const handle = await made.commands.run('exec sleep 600', { background: true, timeoutMs: 0 });
    await made.setTimeout(1000);
    await problem(handle.wait());
    const paused = { ...served.options, query: { state: ['paused' as const] } };
    const listed = await Sandbox.list(paused).nextItems();
    expect(listed.map(({ sandboxId, state }) => [sandboxId, state])).toEqual([
      [made.sandboxId, 'paused'],
    ]);
    expect(await made.isRunning()).toBe(false);
    expect((await problem(made.setTimeout(5000))).name).toBe('SandboxNotFoundError');
    const again = await Sandbox.connect(made.sandboxId, served.options);
    expect([await again.isRunning(), await again.commands.list()]).toEqual([true, []]);
    expect(await again.files.read('kept.txt')).toBe('kept');
    expect([await again.kill(), await again.kill()]).toEqual([true, false]);
  });

  it('[E223] that asks for what a process host cannot give is refused', async () => {
    const refused = [{ allowInternetAccess: false }, { network: { denyOut: ['0.0.0.0/0'] } }];
    for (const options of refused) {
      const { message } = await problem(served.create(options));
      expect(message).toContain('cannot be honoured');
    }
    expect((await problem(served.create({ timeoutMs: 100_000_000 }))).message).toContain('timeout');
    const envs = [{ 'A=B': 'x' }, { A: 'x\0y' }, { '': 'x' }];
    for (const each of envs)
      expect((await problem(served.create({ envs: each }))).message).toContain('envVars');
    const made = await served.create();
    expect((await problem(made.pause())).message).toContain('Holdfast cannot do this');
    expect((await problem(made.createSnapshot())).message).toContain('501');
    const user = { user: 'root-of-nowhere' };
    expect((await problem(made.commands.run('true', user))).name).toBe('AuthenticationError');
    expect((await made.commands.run('echo hi', { user: 'user' })).stdout).toBe('hi\n');
    await made.kill();
  });
});

describe('the door', () => {
  it('[E224] starts nothing without a valid token, for a foreign host or from a page', async () => {
    const made = await served.create();
    const { envdAccessToken } = made as unknown as { envdAccessToken: string };
    const token = { 'X-Access-Token': envdAccessToken };
    const changed = `${envdAccessToken.slice(0, -1)}${envdAccessToken.endsWith('0') ? '1' : '0'}`;
    const statuses = [
      await post(START, {}, TRUE),
      await post(START, { 'X-Access-Token': changed }, TRUE),
      await post(START, { Authorization: `Basic ${btoa('user:')}` }, TRUE),
      await post('/e2b/t/wrong/process.Process/Start', {}, TRUE),
      await post('/e2b/v2/sandboxes', { 'X-API-KEY': 'wrong' }, '{}'),
      await post(START, { ...token, Origin: 'http://evil.example' }, TRUE),
    ].map(({ status }) => status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 403]);
    expect(await made.commands.list()).toEqual([]);
    const right = await post(START, token, TRUE);
    expect(right.text).toContain('"exitCode":0');
    await made.kill();
  });

  it('[E225] lets a debug client in by the token in its path, and logs no token', async () => {
    const url = `${served.server.url}/e2b/t/${served.token}`;
    const debug = await Sandbox.create({ debug: true, sandboxUrl: url });
    expect((await debug.commands.run('echo hi')).stdout).toBe('hi\n');
    expect(await debug.files.exists('/')).toBe(true);
  });

  it('[E226] says that too many starts came in the last envelope, never as a status', async () => {
    const limited = await serveE2b({ startRate: { perSecond: 0.001, burst: 2 } });
    try {
      const made = await limited.create();
      await made.commands.run('true');
      await made.commands.run('true');
      expect((await problem(made.commands.run('true'))).name).toBe('RateLimitError');
    } finally {
      await limited.stop();
      process.env['HOME'] = home;
    }
  });

  it('[E227] answers every malformed request with invalid_argument', async () => {
    const made = await served.create();
    const { envdAccessToken } = made as unknown as { envdAccessToken: string };
    const token = { 'X-Access-Token': envdAccessToken };
    const bad: Buffer[] = [
      Buffer.alloc(0),
      Buffer.from([0, 0, 0]),
      framed('{}', 1),
      framed('{}', 2),
      Buffer.concat([framed('{}'), Buffer.from('x')]),
      framed('not json'),
      framed('[]'),
      framed({}),
      framed({ process: { cmd: '' } }),
      framed({ process: { cmd: 7 } }),
      framed({ process: { cmd: '/bin/true', args: 'x' } }),
      framed({ process: { cmd: '/bin/true', envs: { A: 1 } } }),
      framed({ process: { cmd: '/no/such/program' } }),
      Buffer.concat([Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), Buffer.from('{}')]),
    ];
    for (const body of bad) {
      const { status, text } = await post(START, token, body);
      expect([status, text.includes('"code":"invalid_argument"')]).toEqual([200, true]);
    }
    await assert(
      asyncProperty(uint8Array({ maxLength: 200 }), async (bytes) => {
        const { status, text } = await post(START, token, bytes);
        expect([status, /"code":"(invalid_argument|unknown)"/.test(text)]).toEqual([200, true]);
      }),
      { numRuns: sized(100, 100_000), seed: 7 },
    );
    expect(await made.commands.list()).toEqual([]);
    expect(served.reports).toEqual([]);
    await made.kill();
  });

  it('[E228] keeps a silent stream alive as often as the client asks', async () => {
    const made = await served.create();
    const { envdAccessToken } = made as unknown as { envdAccessToken: string };
    const headers = { 'X-Access-Token': envdAccessToken, 'Keepalive-Ping-Interval': '0.05' };
    const command = { process: { cmd: '/bin/sleep', args: ['0.5'] }, stdin: false };
    const { text } = await post(START, headers, framed(command));
    expect(text.split('"keepalive"').length).toBeGreaterThan(3);
    expect(text).toContain('"exitCode":0');
    await made.kill();
  });
});
