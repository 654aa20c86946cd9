// The server is killed while E2B's SDK reads from it.

import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Sandbox } from 'e2b';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Place, type Running } from '../support/command-line.ts';
import { clientOptions, problem } from '../support/e2b-client.ts';
import { gate } from '../support/hosts.ts';
import { portToKeep } from '../support/ports.ts';
import { sized } from '../support/slow.ts';

let place: Place;
let server: Running;
let options: ReturnType<typeof clientOptions>;
let port: string | undefined;

beforeEach(() => {
  place = new Place();
  mkdirSync(join(place.folder, 'user'));
});

afterEach(async () => {
  await place.close();
  await server.ended;
});

async function begin(env: NodeJS.ProcessEnv = {}): Promise<void> {
  const file = join(place.folder, 'token');
  Object.assign(place.env, env, { HOME: join(place.folder, 'user') });
  port ??= String(await portToKeep());
  server = place.start('serve', '--json', '--token-file', file, '--port', port);
  await server.until('stdout', '\n');
  const { url } = JSON.parse(server.text('stdout')) as { url: string };
  options = clientOptions(url, readFileSync(file, 'utf8').trim());
}

async function kill(): Promise<void> {
  server.child.kill('SIGKILL');
  await once(server.child, 'exit');
}

describe('when the server is killed', () => {
  it('[E240] commands that are being run end as if nothing had happened', async () => {
    await begin();
    const sandbox = await Sandbox.create(options);
    const count = sized(5, 20);
    const gates = Array.from({ length: count }, () => gate());
    const seen: string[] = [];
    const runs = gates.map(({ wait }, at) =>
      sandbox.commands.run(`echo begun ${at}; ${wait}; seq 20000; exit ${at}`, {
        timeoutMs: 0,
        onStdout: (text) => void seen.push(text),
      }),
    );
    const ends = runs.map((run) => run.catch((error: unknown) => error));
    while (seen.length < count) await new Promise((resolve) => setImmediate(resolve));
    await kill();
    for (const { open } of gates) open();
    const ended = (await Promise.all(ends)) as { exitCode: number; stdout: string }[];
    const numbers = Array.from({ length: 20_000 }, (_, at) => `${at + 1}\n`).join('');
    expect(ended.map(({ exitCode }) => exitCode)).toEqual(gates.map((_, at) => at));
    for (const [at, { stdout }] of ended.entries()) expect(stdout).toBe(`begun ${at}\n${numbers}`);
    await begin();
    expect(await sandbox.isRunning()).toBe(true);
  });

  it('[E241] and streams are not handed over, a connect to the next server gives everything', async () => {
    await begin({ HOLDFAST_HANDOVER: 'off' });
    const sandbox = await Sandbox.create({ ...options, envs: { OF_SANDBOX: 'kept' } });
    const { wait, open } = gate();
    const command = `echo begun; ${wait}; echo $OF_SANDBOX; exit 7`;
    const handle = await sandbox.commands.run(command, { background: true, timeoutMs: 0 });
    const broken = problem(handle.wait());
    await kill();
    expect((await broken).message).toContain('terminated');
    open();
    await begin();
    expect(await sandbox.isRunning()).toBe(true);
    const again = await sandbox.commands.connect(handle.pid);
    expect((await problem(again.wait())).exitCode).toBe(7);
    expect(again.stdout).toBe('begun\nkept\n');
    expect((await sandbox.commands.run('echo $OF_SANDBOX')).stdout).toBe('kept\n');
  });

  it('[E243] a key of the command line lets a client in, before and after', async () => {
    await begin();
    const { stdout } = await place.run('token', 'create', '--for', 'ann', '--e2b');
    expect(stdout).toMatch(/^e2b_[0-9a-f]{40}\n$/);
    const sandbox = await Sandbox.create({ ...options, apiKey: stdout.trim() });
    await kill();
    await begin();
    expect((await sandbox.commands.run('echo hi')).stdout).toBe('hi\n');
  });

  it('[E242] a sandbox still ends with its time', async () => {
    await begin();
    const sandbox = await Sandbox.create({ ...options, timeoutMs: 60_000 });
    const handle = await sandbox.commands.run('exec sleep 600', { background: true, timeoutMs: 0 });
    const waiting = problem(handle.wait());
    await sandbox.setTimeout(1000);
    await kill();
    expect((await waiting).message).toContain('end of life');
    await begin();
    expect(await sandbox.isRunning()).toBe(false);
  });
});
