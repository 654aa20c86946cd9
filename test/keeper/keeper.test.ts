// The keeper as a process: one per home, private, patient with slow clients, gone when there is nothing to keep.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { encodeFrame, FrameReader } from '../../src/keeper/frames.ts';
import { openHome } from '../../src/keeper/home.ts';
import { takeLock } from '../../src/keeper/home-lock.ts';
import { openLink } from '../../src/keeper/link.ts';
import { listeningPorts } from '../../src/system/ports.ts';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import {
  failure,
  gate,
  onCleanup,
  OWNER,
  outputText,
  overKeeper,
  program,
  startProcess,
  stopKeeper,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';
import { lookBelow } from '../support/files.ts';
import { sized } from '../support/slow.ts';

const run = promisify(execFile);

describe('one per home', () => {
  const starting = sized(8, 50);

  it(`[K1] a race of ${starting} starters yields one keeper`, async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const starters = await Promise.all(
      Array.from({ length: starting }, () => run(process.execPath, [program('starter.mjs'), home])),
    );
    expect(new Set(starters.map(({ stdout }) => stdout)).size).toBe(1);
    expect(keepersOf(home)).toHaveLength(1);
  });

  it('[K2] a second keeper for the same home leaves at once and says why', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    const second = spawn(process.execPath, [program('../../dist/keeper/main.js'), '--home', home], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const ended = once(second, 'exit');
    let said = '';
    (second.stdio[3] as NodeJS.ReadableStream)
      .setEncoding('utf8')
      .on('data', (text: string) => (said += text));
    await once(second, 'close');
    expect([said, await ended]).toEqual(['another keeper has this home\n', [1, null]]);
    expect((await link.health(OWNER, {})).live).toBe(0);
  });

  it("[K3] what a killed keeper left (lock, socket) stands in nobody's way", async () => {
    const home = temporaryFolder();
    const first = await overKeeper({ folder: home });
    process.kill(first.keeper.pid, 'SIGKILL');
    await first.ended;
    expect(existsSync(openHome(home).socket)).toBe(true);
    const second = await overKeeper({ folder: home });
    expect(second.keeper.pid).not.toBe(first.keeper.pid);
  });

  it('[K3] a keeper that is killed before it accepts a connection is told as gone, and replaced', async () => {
    for (const startIfMissing of [false, true]) {
      const home = temporaryFolder();
      const { pid } = (await overKeeper({ folder: home })).keeper;
      process.kill(pid, 'SIGSTOP');
      while (readEntry(pid)?.state !== 'T');
      const connecting = connectKeeper({ home, env: process.env, startIfMissing });
      process.kill(pid, 'SIGKILL');
      // The kernel closes its socket when its last thread has ended.
      while (readFileSync('/proc/net/unix', 'utf8').includes(openHome(home).socket));
      if (startIfMissing) expect((await connecting).keeper.pid).not.toBe(pid);
      else expect((await failure(connecting)).message).toBe(`No keeper is running for ${home}.`);
    }
  });

  it('[K89] a keeper that holds the lock and does not listen yet is waited for: its starter may have been killed', async () => {
    const home = temporaryFolder();
    onCleanup(() => stopKeeper(home));
    const lock = takeLock(openHome(home).lock);
    let starts = 0;
    const keeperArgs = (): Promise<string[]> => {
      starts += 1;
      if (starts === 2) lock?.release();
      return Promise.resolve(['--idle-ms', '60000']);
    };
    const link = await connectKeeper({ home, env: process.env, keeperArgs });
    expect(starts).toBe(2);
    await link.close();
  });

  it('[K4] leaves by itself when there is nothing to keep, and not before', async () => {
    const [home, hold] = [temporaryFolder(), gate()];
    const first = await connectKeeper({ home, env: process.env, keeperArgs: ['--idle-ms', '50'] });
    const id = await startProcess(first, { command: hold.wait });
    const { pid } = first.keeper;
    await first.close();
    const again = await connectKeeper({ home, env: process.env, startIfMissing: false });
    expect(again.keeper.pid).toBe(pid);
    hold.open();
    await waitFor(again, id, { kind: 'closed' });
    const left = gone(pid);
    await again.close();
    await left;
    expect(existsSync(openHome(home).socket)).toBe(false);
    const error = await failure(connectKeeper({ home, env: {}, startIfMissing: false }));
    expect([error.code, error.message]).toEqual([
      'keeper_unreachable',
      expect.stringContaining(home),
    ]);
  });

  it('[K5] a home that is not ours alone is refused, with the reason', async () => {
    const folder = temporaryFolder();
    const loose = join(folder, 'loose');
    mkdirSync(loose);
    chmodSync(loose, 0o755);
    symlinkSync(folder, join(folder, 'link'));
    writeFileSync(join(folder, 'file'), '');
    for (const [path, reason] of [
      [loose, 'mode 0755'],
      [join(folder, 'link'), 'symbolic link'],
      [join(folder, 'file'), 'not a directory'],
    ] as const) {
      const error = await failure(connectKeeper({ home: path, env: {} }));
      expect([error.code, error.message]).toEqual(['home_unsafe', expect.stringContaining(reason)]);
    }
  });

  it('[K6] a path too long for a socket gets one elsewhere, as private', async () => {
    const home = join(temporaryFolder(), 'x'.repeat(90));
    const link = await overKeeper({ folder: home });
    const { socket } = openHome(home);
    expect(socket.startsWith(home)).toBe(false);
    expect(lstatSync(socket).mode & 0o777).toBe(0o600);
    expect(lstatSync(join(socket, '..')).mode & 0o777).toBe(0o700);
    expect((await link.health(OWNER, {})).live).toBe(0);
  });

  it('[K7] everything it makes is private, whatever the umask, and children keep theirs', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    const id = await startProcess(link, { command: 'umask; echo x', key: 'k' });
    await waitFor(link, id, { kind: 'closed' });
    expect((await outputText(link, id)).trim().split('\n')).toEqual([
      process.umask().toString(8).padStart(4, '0'),
      'x',
    ]);
    const modes = lookBelow(home, (path) => ({ path, mode: lstatSync(path).mode }));
    expect(modes.filter(({ mode }) => (mode & 0o077) !== 0)).toEqual([]);
    expect(readFileSync('/proc/net/unix', 'utf8')).not.toMatch(/@.*holdfast/);
  });

  it('[K8] SIGUSR1 does not open a debugger, and SIGHUP does not end it', async () => {
    const link = await overKeeper();
    process.kill(link.keeper.pid, 'SIGUSR1');
    process.kill(link.keeper.pid, 'SIGHUP');
    expect((await link.health(OWNER, {})).pid).toBe(link.keeper.pid);
    expect(listeningPorts([link.keeper.pid])).toEqual([]);
  });

  it('[K9] SIGTERM ends everything it holds, and leaves no descendant', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home, limits: { graceMs: 300 } });
    const id = await startProcess(link, {
      command: 'setsid sleep 1000 & trap "" TERM; echo up; while :; do sleep 1; done',
    });
    await waitFor(link, id, { kind: 'text', text: 'up' });
    const { pid } = await link.get(OWNER, { id });
    process.kill(link.keeper.pid, 'SIGTERM');
    await link.ended;
    await gone(link.keeper.pid);
    expect(isAlive(readEntry(pid))).toBe(false);
  });
});

describe('many clients', () => {
  it('[K10] a client that never reads stalls neither a child nor another client', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    const flood = await startProcess(link, { command: 'head -c 40000000 /dev/zero' });
    await waitFor(link, flood, { kind: 'closed' });
    const stalled = await rawConnection(home);
    for (let id = 1; id <= 200; id += 1) {
      stalled.write(
        Buffer.concat(
          encodeFrame({
            id,
            op: 'read',
            owner: OWNER,
            params: { id: flood, after: 1, maxBytes: 4_000_000 },
          }),
        ),
      );
    }
    const echo = await startProcess(link, { command: 'cat', stdin: 'pipe' });
    for (let round = 0; round < 20; round += 1) {
      await link.write(OWNER, { id: echo, data: Buffer.from(`round ${round}\n`) });
      await waitFor(link, echo, { kind: 'text', text: `round ${round}\n`.trim() });
    }
    stalled.destroy();
    await once(stalled, 'close');
    expect((await link.get(OWNER, { id: echo })).state).toBe('running');
  });

  it('[K11] bytes that are not the protocol end that connection and nothing else', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    for (const garbage of [
      'GET / HTTP/1.1\r\n\r\n',
      '\xff\xff\xff\xff\xff\xff\xff\xff',
      '\x10\0\0\0\x0c\0\0\0{"not json  ',
    ]) {
      const raw = await rawConnection(home);
      raw.write(Buffer.from(garbage, 'latin1'));
      await once(raw, 'close');
    }
    expect((await link.health(OWNER, {})).live).toBe(0);
  });

  it('[K12] a cancelled call, or a client that goes away, leaves no waiter and ends no process', async () => {
    const home = temporaryFolder();
    const link = await overKeeper({ folder: home });
    const id = await startProcess(link, { command: 'sleep 1000' });
    const other = await connectKeeper({ home, env: {} });
    const waits = Array.from({ length: 50 }, () =>
      failure(other.wait(OWNER, { waits: [{ id, for: [{ kind: 'exit' }] }] })),
    );
    while ((await link.health(OWNER, {})).parkedWaits < 50);
    await other.close();
    for (const wait of waits) expect((await wait).code).toBe('keeper_lost');
    while ((await link.health(OWNER, {})).parkedWaits > 0);
    expect((await link.get(OWNER, { id })).state).toBe('running');
  });
});

describe('versions', () => {
  it('[K13] an older keeper is used for what it knows, and says what it does not', async () => {
    const { socket } = await pretend({
      protocol: 1,
      version: '0.0.9',
      pid: 1,
      operations: ['get'],
    });
    const link = await openLink(socket);
    onCleanup(() => link.close());
    const error = await failure(link.search(OWNER, { id: 'x', pattern: 'y' }));
    expect([error.code, error.message]).toEqual([
      'keeper_too_old',
      expect.stringMatching(/0\.0\.9.*"search"/),
    ]);
  });

  it('[K14] another protocol is refused before anything is asked', async () => {
    const { socket } = await pretend({ protocol: 99, version: '9.0.0', pid: 1, operations: [] });
    const error = await failure(openLink(socket));
    expect([error.code, error.message]).toEqual([
      'keeper_too_old',
      expect.stringContaining('protocol 99'),
    ]);
  });
});

/** Something that welcomes like a keeper of another version. */
async function pretend(welcome: object): Promise<{ socket: string }> {
  const socket = join(temporaryFolder(), 'other.sock');
  const sockets = new Set<Socket>();
  const server = createServer((connection) => {
    sockets.add(connection);
    connection.on('error', () => undefined).write(Buffer.concat(encodeFrame({ welcome })));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  onCleanup(() => {
    for (const each of sockets) each.destroy();
    server.close();
  });
  return { socket };
}

/** A connection past its welcome that reads nothing more by itself. */
async function rawConnection(home: string): Promise<Socket> {
  const socket = connect(openHome(home).socket);
  const reader = new FrameReader();
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      for (const message of reader.push(chunk)) if (message) resolve();
    });
  });
  socket.removeAllListeners('data').pause();
  socket.on('error', () => undefined);
  onCleanup(() => void socket.destroy());
  return socket;
}

/** Those who hold the lock of a home, as the kernel lists them. */
function keepersOf(home: string): string[] {
  const { ino } = lstatSync(openHome(home).lock);
  const held = readFileSync('/proc/locks', 'utf8').split('\n');
  return held.filter((line) => line.split(' ').some((word) => word.endsWith(`:${ino}`)));
}

/** Resolves when a process that is not our child is gone: tail watches it by the means of the kernel. */
async function gone(pid: number): Promise<void> {
  await run('tail', ['--pid', String(pid), '-s', '0.02', '-f', '/dev/null']);
}
