// A new version replaces the program's files while a keeper and a server of the old one run.
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { connect } from '../../src/client/connect.ts';
import { CodexClient } from '../support/codex-client.ts';
import { Place, Running, type Ended } from '../support/command-line.ts';
import { onCleanup, program, temporaryFolder } from '../support/hosts.ts';

/** A copy of the built program, whose files can be taken away. */
function copyProgram(): { script: string; takeAway: () => void } {
  const copy = temporaryFolder();
  for (const name of ['dist', 'fonts', 'package.json'])
    cpSync(program(`../../${name}`), join(copy, name), { recursive: true });
  symlinkSync(program('../../node_modules'), join(copy, 'node_modules'));
  return {
    script: join(copy, 'dist/cli/main.js'),
    takeAway: () => {
      renameSync(join(copy, 'dist'), join(copy, 'replaced'));
      mkdirSync(join(copy, 'dist'));
    },
  };
}

it('[K26] a keeper goes on whole when its files are replaced: it has read all it needs', async () => {
  const { script, takeAway } = copyProgram();
  const place = new Place();
  onCleanup(() => place.close());
  const words = ['run', '--home', place.home, '--background', '--stdin'];
  const command = 'echo aaa1; read x; echo "got $x"; exit 4';
  const started = new Running([...words, command], { script, env: place.env });
  const id = (await started.ended).stdout.trim();
  takeAway();
  const found = await place.run('wait', id, '--for', 'regex=^a+1$');
  expect(found).toMatchObject({ code: 0, stdout: `${id}  aaa1\n` });
  expect(await place.run('search', id, 'a{3}\\d')).toMatchObject({ code: 0 });
  await place.run('send', id, 'it');
  expect((await place.run('wait', id)).code).toBe(4);
  expect((await place.run('logs', id)).stdout).toBe('aaa1\ngot it\n');
  expect((await place.run('run', 'echo next')).stdout).toBe('next\n');
});

it('[UP12] an installation under a keeper and a server with a process and open waits: none of them notices, and "upgrade" replaces the server', async () => {
  const before = copyProgram();
  const place = new Place();
  onCleanup(() => place.close());
  const old = (...words: string[]): Running =>
    new Running(words, { script: before.script, env: place.env });
  expect(await old('upgrade', '--check').ended).toMatchObject({ code: 0 });
  const server = old('serve', '--port', '0');
  await server.until('stdout', 'Ctrl-C');
  const words = ['--background', '--stdin', '--name', 'kept', 'echo begun; read x; exit 4'];
  const id = (await old('run', ...words).ended).stdout.trim();
  expect(await old('upgrade', '--check').ended).toMatchObject({ code: 0 });
  // One over the keeper's socket, one that the server was asked.
  const waits = old('wait', 'kept');
  const holdfast = await connect({ home: place.home, startIfMissing: false });
  onCleanup(() => holdfast.close());
  const waiting = (await holdfast.get(id)).waitForExit();
  await untilParked(place, 2);
  before.takeAway();
  const installed = copyProgram();
  const now = (...words: string[]): Promise<Ended> =>
    new Running(words, { script: installed.script, env: place.env }).ended;
  const check = await now('upgrade', '--check');
  expect(check.code).toBe(1);
  expect(check.stdout).toMatch(/^server .*"holdfast upgrade" replaces it/m);
  expect(check.stdout).toMatch(/^keeper .* it has 1 process; /m);
  const upgraded = await now('upgrade', '--json');
  expect([upgraded.code, JSON.parse(upgraded.stdout)]).toMatchObject([
    1,
    { result: { current: false, server: { olderBuild: false }, keeper: { olderBuild: true } } },
  ]);
  expect((await server.ended).code).toBe(0);
  expect(await now('send', 'kept', 'x')).toMatchObject({ code: 0 });
  expect((await waits.ended).code).toBe(4);
  expect((await waiting)?.outcome).toMatchObject({ code: 4 });
  expect((await now('shutdown')).code).toBe(0);
  expect(await now('run', 'echo new')).toMatchObject({ code: 0, stdout: 'new\n' });
  expect(await now('upgrade', '--check')).toMatchObject({ code: 0 });
});

async function untilParked(place: Place, count: number): Promise<void> {
  for (;;) {
    const { result } = await place.json('status');
    if (result['parkedWaits'] === count) return;
  }
}

it('[K50] a server whose files are gone serves codex and MCP clients as before', async () => {
  const { script, takeAway } = copyProgram();
  const place = new Place();
  onCleanup(() => place.close());
  const tokenFile = join(place.folder, 'token-of-the-test');
  const args = ['serve', '--json', '--port', '0', '--token-file', tokenFile];
  const server = new Running(args, { script, env: place.env });
  await server.until('stdout', '\n');
  const { url } = JSON.parse(server.text('stdout')) as Record<string, string>;
  const token = readFileSync(tokenFile, 'utf8').trim();
  const codexUrl = `${(url ?? '').replace('http', 'ws')}/codex?token=${token}`;
  const initialize = async (): Promise<number> => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    };
    const { status } = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    });
    return status;
  };
  // Both dialects are loaded by their first client.
  await CodexClient.ready(codexUrl);
  expect(await initialize()).toBe(200);
  takeAway();
  const client = await CodexClient.ready(codexUrl);
  expect(await client.call('environment/status')).toEqual({ status: 'ready' });
  expect(await initialize()).toBe(200);
  await place.run('shutdown');
});
