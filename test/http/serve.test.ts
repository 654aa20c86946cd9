// The server as a person meets it: `npm start`, the lines that it prints, and the ways to end it.
import { spawn, type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { main, Place, root } from '../support/command-line.ts';
import { sized } from '../support/slow.ts';

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.close());

/** What a shell answers that knows nothing of this test's environment. */
async function pasted(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const shell = spawn('sh', ['-c', line], {
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'], HOME: tmpdir() },
  });
  const texts = { stdout: '', stderr: '' };
  for (const sink of ['stdout', 'stderr'] as const)
    shell[sink].on('data', (chunk: Buffer) => (texts[sink] += chunk.toString()));
  const [code] = (await once(shell, 'close')) as [number];
  return { code, ...texts };
}

/** Its output up to the line that ends the greeting. */
async function greeting(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (/To end everything: .*\n/.test(text)) return text;
  }
  throw new Error(`no greeting but: ${text}`);
}

function alive(pid: number): boolean {
  return isAlive(readEntry(pid));
}

describe('npm start', () => {
  it('[SV1] sets up, serves, and prints lines that work when pasted, without a token in any argument', async () => {
    const home = join(place.folder, "a person's home");
    const child = spawn('npm', ['start'], {
      cwd: root,
      env: { ...process.env, ...place.env, HOLDFAST_HOME: home },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const text = await greeting(child);
    const [curl = '', run = ''] = [...text.matchAll(/^ {2}(.*)$/gm)].map(([, line]) => line ?? '');
    expect(curl).toContain('curl');
    expect(text).not.toContain('hf_');
    expect(curl).not.toContain('$(');
    const started = await pasted(curl);
    expect(JSON.parse(started.stdout)).toMatchObject({ process: { command: 'echo hello' } });
    expect(await pasted(run)).toEqual({ code: 0, stdout: 'hello\n', stderr: '' });
    // Both are the same home: what came by HTTP is listed here.
    const listed = await place.run('ps', '-qa', '--home', home);
    expect(listed.stdout.trim().split('\n')).toHaveLength(2);
    const stop = /To end everything: {2}(.*)/.exec(text)?.[1] ?? '';
    const ended = once(child, 'exit');
    expect((await pasted(stop)).code).toBe(0);
    await ended;
  });
});

describe('a crowd', () => {
  // As many as the kernel lets wait at most; more than Node asks it for (511).
  const crowd = Math.min(
    sized(700, 2000),
    Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8')),
  );

  it(`[SV21] of ${crowd} callers at once is let in by TCP and by the sockets, however busy server and keeper are`, async () => {
    const server = place.start('serve', '--json');
    await server.until('stdout', '\n');
    const ready = JSON.parse(server.text('stdout')) as {
      url: string;
      socket: string;
      home: string;
      pid: number;
      keeperPid: number;
    };
    const { port } = new URL(ready.url);
    const doors = [
      { port: Number(port), host: '127.0.0.1' },
      { path: ready.socket },
      { path: join(ready.home, 'keeper.sock') },
    ];
    // As good as busy: neither accepts a connection.
    for (const pid of [ready.pid, ready.keeperPid]) process.kill(pid, 'SIGSTOP');
    try {
      for (const door of doors) {
        const sockets = Array.from({ length: crowd }, () => connect(door));
        await Promise.all(sockets.map((socket) => once(socket, 'connect')));
        for (const socket of sockets) socket.destroy();
      }
    } finally {
      for (const pid of [ready.pid, ready.keeperPid]) process.kill(pid, 'SIGCONT');
    }
    expect((await place.run('status')).code).toBe(0);
  });
});

describe('shutdown, and stop of everything', () => {
  it('[SV2] ends server, keeper and every process, each with its chance to clean up, and leaves nothing', async () => {
    const mark = join(place.folder, 'cleaned');
    await place.background(`trap 'echo bye > ${mark}; exit 0' TERM; echo up; sleep 300 & wait`);
    const stubborn = await place.background(
      `trap '' TERM; setsid sleep 300 & echo "pid $!"; sleep 300`,
    );
    for (const text of ['up', 'pid']) {
      const ids = (await place.run('ps', '-q')).stdout.trim().split('\n');
      await place.run('wait', ...ids, '--any', '--for', `text=${text}`);
    }
    const runaway = Number(/pid (\d+)/.exec((await place.run('logs', stubborn)).stdout)?.[1]);
    const server = place.start('serve', '--json');
    await server.until('stdout', '\n');
    const { pid, keeperPid } = JSON.parse(server.text('stdout')) as Record<string, number>;
    expect(alive(runaway)).toBe(true);
    const stopped = await place.json('shutdown', '--grace', '2s');
    expect(stopped).toMatchObject({ ok: true, code: 0, result: { stopped: true, ended: 2 } });
    expect(readFileSync(mark, 'utf8')).toBe('bye\n');
    expect([pid, keeperPid, runaway].filter((each) => alive(Number(each)))).toEqual([]);
    expect((await server.ended).code).toBe(0);
    expect((await place.run('shutdown')).stdout).toContain('No keeper is running');
    // What was kept can be read afterwards.
    expect((await place.run('logs', stubborn)).stdout).toContain(`pid ${runaway}`);
  });

  it('[SV2] `shutdown` does not wait for a parent that has not reaped the server', async () => {
    const server = place.start('serve', '--json');
    await server.until('stdout', '\n');
    // While this call lasts, nobody here takes note of a child's end.
    const env = { ...process.env, ...place.env };
    const stopped = spawnSync(process.execPath, [main, 'shutdown'], { env, timeout: 60_000 });
    expect(stopped.status).toBe(0);
    expect((await server.ended).code).toBe(0);
  });

  it('[SV2] with --owner ends all of that owner and nothing else', async () => {
    const mine = await place.background('--owner', 'me', 'sleep 300');
    const other = await place.background('sleep 300');
    const { result } = await place.json('stop', '--owner', 'me', '--all');
    expect(result).toMatchObject([{ id: mine, survivors: [] }]);
    expect((await place.run('ps', '-q')).stdout).toBe(`${other}\n`);
  });

  it('[C26] stop needs an id or --all, which ends processes and neither keeper nor server', async () => {
    const other = await place.background('--owner', 'me', 'sleep 300');
    const id = await place.background('sleep 300');
    for (const args of [[], ['--owner', 'me'], ['--grace', '1s'], ['--all', id]])
      expect(await place.run('stop', ...args)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/missing argument ID|ids or --all/),
      });
    expect((await place.run('ps', '-q')).stdout).toBe(`${id}\n${other}\n`);
    expect((await place.json('stop', '--all')).result).toMatchObject([{ id }, { id: other }]);
    expect((await place.json('status')).result).toMatchObject({ running: true, live: 0 });
    expect((await place.run('stop', '--all')).stdout).toBe('No process is running.\n');
  });

  it('[SV2] `signal` is another name of `kill`', async () => {
    const id = await place.background('--', 'sleep', '300');
    expect((await place.run('signal', id, '-s', 'INT')).stdout).toContain('INT sent to 1 process');
    expect((await place.run('wait', id)).code).toBe(130);
  });
});

it('[SV7] every command has its JSON form, those of the server too', async () => {
  const id = await place.finished('true');
  const calls = [
    ['doctor'],
    ['completion', 'bash'],
    ['token', 'create', '--owner', 'me'],
    ['token', 'list'],
    ['restart'],
    ['signal', id],
    ['prune'],
    ['shutdown'],
    ['shutdown'],
  ];
  for (const args of calls) {
    const { command, timestamp, result, error } = await place.json(...args);
    expect({ args, command }).toEqual({ args, command: args[0] });
    expect(new Date(timestamp).toISOString()).toBe(timestamp);
    expect(result ?? error).toBeTypeOf('object');
  }
});
