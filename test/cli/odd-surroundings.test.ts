// The command line in odd surroundings: output that cannot be written, a deleted directory, empty and very long
// arguments.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { main, Place, root, type Ended } from '../support/command-line.ts';

const agentTty = join(root, 'dist/cli/agent-tty.js');

let place: Place;
beforeAll(() => {
  place = new Place();
});
afterAll(() => place.close());

type Result = Pick<Ended, 'code' | 'stderr'> & { readonly stdout: string };

/** Starts a command through sh, which can close, fill and delete what the command is given. */
function inShell(script: string, cwd = root): Promise<Result> {
  const env = { ...process.env, ...place.env, NODE: process.execPath, MAIN: main, TTY: agentTty };
  const child = spawn('sh', ['-c', script], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (text.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (text.stderr += chunk.toString()));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...text })));
}

const FULL = 'stdout cannot be written: no space left on device';

it.each([
  ['ps --all', 8],
  ['status --json', 8],
  ['logs full', 8],
  ['tty list --json', 8],
])('[C42] %s says in one sentence that a full disk takes no output', async (command, code) => {
  await place.finished('--name', 'full', 'seq 1 10');
  const ended = await inShell(`"$NODE" "$MAIN" ${command} > /dev/full`);
  expect(ended).toEqual({ code, stdout: '', stderr: expect.stringContaining(FULL) });
  expect(ended.stderr.trimEnd()).not.toContain('\n    at ');
});

it('[C42] agent-tty says it with its own code', async () => {
  const ended = await inShell('"$NODE" "$TTY" list --json > /dev/full');
  expect(ended).toEqual({
    code: 8,
    stdout: '',
    stderr: `STORAGE_WRITE_ERROR: ${FULL}. The output is not complete.\n`,
  });
});

it('[C42] run leaves its process running and says so', async () => {
  const ended = await inShell(
    '"$NODE" "$MAIN" run --name kept "echo a; exec sleep 600" > /dev/full',
  );
  expect(ended.code).toBe(125);
  expect(ended.stderr).toContain(FULL);
  expect(ended.stderr).toMatch(/left running: \w{26}\. Stop it with/);
  expect((await place.run('stop', 'kept')).stdout).toContain('SIGTERM by cli');
});

it('[C21] agent-tty ends without a word when its reader has gone', async () => {
  const child = spawn('sh', ['-c', 'read go; exec "$0" "$1" --help', process.execPath, agentTty]);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise((resolve) => child.once('close', (code) => resolve({ code, stderr })));
  child.stdout.destroy();
  await once(child.stdout, 'close');
  child.stdin.end('go\n');
  expect(await ended).toEqual({ code: 141, stderr: '' });
});

it('[C43] commands work in a deleted directory; run names it', async () => {
  const gone = join(place.folder, 'gone');
  mkdirSync(gone);
  const inGone = (command: string): Promise<Result> => {
    mkdirSync(gone, { recursive: true });
    return inShell(`rmdir '${gone}'; ${command}`, gone);
  };
  rmdirSync(gone);
  expect(await inGone('"$NODE" "$MAIN" ps -q')).toEqual({ code: 0, stdout: '', stderr: '' });
  expect((await inGone('"$NODE" "$TTY" list')).code).toBe(0);
  const run = await inGone('"$NODE" "$MAIN" run true');
  expect(run.code).toBe(125);
  expect(run.stderr).toContain(gone);
  expect((await inGone('"$NODE" "$MAIN" run --cwd / pwd')).stdout).toBe('/\n');
});

it.each(['stop', 'kill', 'rm', 'logs', 'wait', 'inspect', 'attach'])(
  '[C44] %s calls an empty argument empty',
  async (command) => {
    const { code, stderr } = await place.run(command, '');
    expect(code).toBe(2);
    expect(stderr).toMatch(/argument ID is empty \(an unset variable\?\)\./);
  },
);

it('[C44] a very long argument is shortened in an error', async () => {
  const long = 'x'.repeat(5000);
  for (const args of [['logs', long], [long], ['ps', `--${long}`], ['ps', long], ['tty', long]]) {
    const { code, stderr } = await place.run(...args);
    expect(code).toBeGreaterThan(0);
    expect(stderr.length).toBeLessThan(600);
  }
});

it('[C20] the demo calls the program by its name where the PATH leads to it', async () => {
  const bin = join(place.folder, 'bin');
  mkdirSync(bin);
  symlinkSync(main, join(bin, 'holdfast'));
  const { stdout } = await inShell(`PATH='${bin}':$PATH; "$NODE" '${bin}/holdfast' demo`);
  expect(stdout).toMatch(/^ {3}holdfast ps --all$/m);
});
