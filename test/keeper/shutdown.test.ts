// Shutting down under faults: it ends, with a true exit code and true words, and the home is usable afterwards. Each fault
// once; with SHUTDOWN_RUNS as often as that says, and then with the longest time that a shutdown took.

import { execFileSync, spawnSync } from 'node:child_process';
import { on, once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  watch,
} from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { commandOf, isAlive, readEntry } from '../../src/system/proc-table.ts';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { openHome } from '../../src/keeper/home.ts';
import { lockHolder, readNote, takeLock } from '../../src/keeper/home-lock.ts';
import { tryStartLock } from '../../src/keeper/start-lock.ts';
import type { ServerNote } from '../../src/server/server-lock.ts';
import { fillUp, leaveStray, onCleanup, overKeeper, program } from '../support/hosts.ts';
import { turnsUntil } from '../support/recorder.ts';
import { main, Place, root, Running, type Ended } from '../support/command-line.ts';

const RUNS = Number(process.env['SHUTDOWN_RUNS'] ?? 1);
const GOAL_MS = 15_000;
const TIMEOUT_MS = 60_000 * RUNS;
const isRoot = process.getuid?.() === 0;
const took: string[] = [];
/** Most of their time is the patience of a shutdown. Each ends what it began itself. */
const describeAtOnce = RUNS === 1 ? describe.concurrent : describe;

afterAll(() => {
  if (RUNS > 1) process.stdout.write(`${took.join('\n')}\n`);
});

/** What a fault was done to, and what has to be undone. */
interface Fault {
  readonly undo?: () => void | Promise<void>;
}

interface Shutdown {
  readonly place: Place;
  readonly ended: Ended;
  readonly keeperPid: number;
}

async function repeatedly(
  name: string,
  cause: (place: Place) => Promise<Fault>,
  check: (shutdown: Shutdown) => Promise<void> | void,
  limits?: object,
): Promise<void> {
  const times: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const place = new Place(limits);
    const { undo } = await cause(place);
    try {
      const keeperPid = keeperOf(place);
      const began = performance.now();
      const ended = await place.run('shutdown');
      times.push(performance.now() - began);
      await check({ place, ended, keeperPid });
      expect(await place.run('run', 'echo usable')).toMatchObject({ code: 0, stdout: 'usable\n' });
    } finally {
      await undo?.();
      await place.close();
    }
  }
  const within = times.filter((ms) => ms <= GOAL_MS).length;
  took.push(
    `shutdown, ${name}: ${within} of ${RUNS} within 15 s, longest ${(Math.max(...times) / 1000).toFixed(1)} s`,
  );
}

/** From its lock: a keeper that takes no connections is to be found, too. */
function keeperOf(place: Place): number {
  const holder = lockHolder(openHome(place.home).lock);
  if (holder === undefined || holder === 'unknown') throw new Error('there is no keeper');
  return holder.pid;
}

const alive = (pid: number): boolean => isAlive(readEntry(pid));

describeAtOnce('shutdown always ends', () => {
  it.skipIf(!isRoot)(
    '[K20] with a process of another user, which survives and is named (root only: it takes capabilities away)',
    async () => {
      let foreign = 0;
      await repeatedly(
        'process of another user',
        async (place) => {
          // A keeper without CAP_KILL may not signal what belongs to another user.
          const args = [
            'run',
            '--background',
            '--json',
            'exec setpriv --reuid 12345 --clear-groups sleep 1000',
          ];
          const { stdout } = spawnSync(
            'setpriv',
            ['--bounding-set', '-kill', process.execPath, main, ...args],
            {
              // Its cgroup would end it.
              env: { ...process.env, ...place.env, HOLDFAST_CGROUPS: 'off' },
              encoding: 'utf8',
            },
          );
          const { result } = JSON.parse(stdout) as {
            result: { process: { id: string; pid: number } };
          };
          foreign = result.process.pid;
          // Until then setpriv is there, as the keeper's own user.
          await turnsUntil(() => commandOf(foreign) === 'sleep 1000');
          return { undo: () => void process.kill(foreign, 'SIGKILL') };
        },
        ({ ended, keeperPid }) => {
          expect(ended.code).toBe(1);
          expect(ended.stdout).toContain(
            `The keeper (pid ${keeperPid}) is gone; 0 processes ended.`,
          );
          expect(ended.stdout).toContain(
            `SURVIVED: ${foreign} sleep 1000 (it belongs to another user), of process `,
          );
          expect([alive(keeperPid), alive(foreign)]).toEqual([false, true]);
        },
        { graceMs: 100 },
      );
    },
    TIMEOUT_MS,
  );

  it(
    '[K20] with a keeper that has no free descriptor, which says what it could not look for',
    async () => {
      let child = 0;
      await repeatedly(
        'no free descriptor',
        async (place) => {
          const { result } = await place.json('run', '--background', 'exec sleep 1000');
          child = (result['process'] as { pid: number }).pid;
          const pid = String(keeperOf(place));
          spawnSync('prlimit', ['--pid', pid, '--nofile=3:3']);
          return {};
        },
        ({ ended, keeperPid }) => {
          expect(ended.stdout).toContain(`The keeper (pid ${keeperPid}) is gone; 1 process ended.`);
          // True in both cases: nothing survived, or something could not be looked at, which is then said.
          expect(ended.code).toBe(ended.stdout.includes('NOT DONE') ? 1 : 0);
          expect([alive(keeperPid), alive(child)]).toEqual([false, false]);
        },
      );
    },
    TIMEOUT_MS,
  );

  it(
    '[K20] with a client that never closes its side',
    async () => {
      await repeatedly(
        'client that never closes',
        async (place) => {
          await place.background('sleep 1000');
          const socket = connect({ path: openHome(place.home).socket, allowHalfOpen: true });
          socket.on('error', () => undefined);
          await once(socket, 'connect');
          return { undo: () => void socket.destroy() };
        },
        ({ ended, keeperPid }) => {
          expect(ended).toMatchObject({
            code: 0,
            stdout: `The keeper (pid ${keeperPid}) is gone; 1 process ended.\n`,
          });
        },
      );
    },
    TIMEOUT_MS,
  );

  it(
    '[K20] with a server that is stopped',
    async () => {
      let server = 0;
      await repeatedly(
        'stopped server',
        async (place) => {
          const serving = place.start('serve', '--json', '--port', '0');
          await serving.until('stdout', '\n');
          server = serving.child.pid ?? 0;
          await place.background('sleep 1000');
          serving.child.kill('SIGSTOP');
          return { undo: async () => void (await serving.ended) };
        },
        ({ ended, keeperPid }) => {
          expect(ended).toMatchObject({
            code: 0,
            stdout: `The server (pid ${server}) is gone.\nThe keeper (pid ${keeperPid}) is gone; 1 process ended.\n`,
          });
          expect(alive(server)).toBe(false);
        },
      );
    },
    TIMEOUT_MS,
  );

  describe.runIf(isRoot)('on file systems (root only: it mounts them)', () => {
    it.skipIf(!existsSync('/dev/fuse'))(
      '[K20] with a process that hangs in a dead mount, which survives and is named',
      async () => {
        let hanging = 0;
        await repeatedly(
          'dead mount',
          async (place) => {
            const folder = join(place.folder, 'mount');
            mkdirSync(folder);
            const mount = new Running([folder], { script: program('dead-mount.mjs') });
            await mount.until('stdout', 'ready');
            // A shell asks for its folder as it starts: only then may the mount die.
            const args = ['--stdin', '--cwd', folder, 'echo started; read _; exec ls .'];
            const { result } = await place.json('run', '--background', ...args);
            const { id, pid } = result['process'] as { id: string; pid: number };
            hanging = pid;
            await place.run('wait', id, '--for', 'text=started');
            mount.child.stdin?.write('die\n');
            await mount.until('stdout', 'dead');
            await place.run('send', id, 'go');
            await mount.until('stdout', 'asked');
            return {
              undo: async () => {
                mount.child.kill('SIGKILL');
                await mount.ended;
                execFileSync('umount', ['-l', folder]);
              },
            };
          },
          ({ ended, keeperPid }) => {
            expect(ended.code).toBe(1);
            expect(ended.stdout).toContain(
              `The keeper (pid ${keeperPid}) is gone; 0 processes ended.`,
            );
            expect(ended.stdout).toContain(`SURVIVED: ${hanging} ls ., of process `);
            expect([alive(keeperPid), alive(hanging)]).toEqual([false, true]);
          },
          { graceMs: 100 },
        );
      },
      TIMEOUT_MS,
    );

    it(
      '[K20] with a full disk: an outcome that was told is not lost',
      async () => {
        let id = '';
        await repeatedly(
          'full disk',
          async (place) => {
            mkdirSync(place.home);
            const size = ['-o', 'size=1m,mode=0700'];
            execFileSync('mount', ['-t', 'tmpfs', ...size, 'tmpfs', place.home]);
            // More than the reserve is held in memory, and has to make room for the outcome.
            const command = 'read _; head -c 700000 /dev/zero; exit 7';
            id = await place.background('--stdin', command);
            fillUp(place.home);
            await place.run('send', id, 'go');
            expect((await place.run('wait', id)).code).toBe(7);
            return { undo: () => void execFileSync('umount', ['-l', place.home]) };
          },
          async ({ place, ended, keeperPid }) => {
            expect(ended).toMatchObject({
              code: 0,
              stdout: `The keeper (pid ${keeperPid}) is gone; no process was running.\n`,
            });
            expect((await place.run('wait', id)).code).toBe(7);
            rmSync(join(place.home, 'filler'));
          },
        );
      },
      TIMEOUT_MS,
    );
  });
});

describe('the end of a keeper', () => {
  it('[X30] orphans of nobody are ended with everybody below them, and counted', async () => {
    const link = await overKeeper({ groups: false });
    const pids = await leaveStray(link);
    expect(pids.map(alive)).toEqual([true, true]);
    expect(await link.stop()).toEqual({ ended: 0, strays: 2, survivors: [], problems: [] });
    expect(pids.map(alive)).toEqual([false, false]);
  });

  it('[K21] two closers at once: both wait for the end and are told the same; nothing unexpected', async () => {
    const place = new Place();
    await place.background('sleep 1000');
    const pid = keeperOf(place);
    const [first, second] = [place.start('shutdown'), place.start('shutdown')];
    process.kill(pid, 'SIGTERM');
    const words = `The keeper (pid ${pid}) is gone; 1 process ended.\n`;
    // One that came when all was over has found none.
    const none = `No keeper is running for ${place.home}.\n`;
    for (const { stdout, code } of [await first.ended, await second.ended]) {
      expect([words, none]).toContain(stdout);
      expect(code).toBe(0);
    }
    expect(readFileSync(join(place.home, 'keeper.log'), 'utf8')).not.toMatch(
      /^\S+ (?:warn|error) /m,
    );
    await place.close();
  });

  it('[K24] its changes of state and those of its processes are in keeper.log, and nothing of their environment', async () => {
    const place = new Place();
    const secret = 'a-value-of-the-environment';
    const seven = await place.background('--name', 'seven', '--env', `SECRET=${secret}`, 'exit 7');
    await place.run('wait', seven, '--for', 'settled');
    await place.run('rm', seven);
    const ended = await place.background(`echo ${secret}; sleep 1000`);
    const { result } = await place.json('status');
    await place.run('shutdown');
    const path = join(place.home, 'keeper.log');
    expect(result['log']).toBe(path);
    const text = readFileSync(path, 'utf8');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(text).not.toContain(secret);
    const of = (id: string): string[] =>
      [...text.matchAll(new RegExp(`^\\S+ info  (\\w+) cli ${id}: (.*)$`, 'gm'))].map(
        ([, event, reason]) => `${event}: ${reason}`,
      );
    expect(of(seven).toSorted()).toEqual([
      'close: every output has ended',
      'exit: exit 7',
      'forget: removed by cli',
      'settle: no descendant is alive',
      expect.stringMatching(/^start: pid \d+$/),
    ]);
    expect(of(ended)).toContain('exit: SIGTERM by host closed');
    expect(text).toMatch(/ start keeper: pid \d+, version /);
    expect(text).toMatch(/ start keeper: fast paths: .*output by (?:koffi|thread)\n/);
    expect(text).toMatch(/ stop keeper: a client asked for it\n/);
    expect(text).toMatch(/ stop keeper: 1 ended, survivors: none, not done: 0\n$/);
    await place.close();
  });

  it('[K23] an empty fingerprint.key, as a crash may leave it, is made anew; a whole one is kept', async () => {
    const place = new Place();
    const key = join(place.home, 'fingerprint.key');
    await place.run('run', 'true');
    await place.run('shutdown');
    const first = readFileSync(key);
    await place.run('run', 'true');
    await place.run('shutdown');
    expect(readFileSync(key)).toEqual(first);
    truncateSync(key, 0);
    expect((await place.run('run', 'true')).code).toBe(0);
    expect(readFileSync(key)).toHaveLength(32);
    expect(statSync(key).mode & 0o777).toBe(0o600);
    await place.close();
  });

  it('[K61] shutdown goes on to the keeper when the server ends by itself while it is told to', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    await place.background('sleep 1000');
    const pid = keeperOf(place);
    const lock = takeLock<ServerNote>(join(place.home, 'server.lock'));
    onCleanup(() => lock?.release());
    // It has ended since it was looked up: no process has a number as high as this.
    lock?.note({ pid: 2 ** 22 + 1, url: 'http://127.0.0.1:1', again: [] });
    const { code, stdout } = await place.run('shutdown');
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`The keeper (pid ${pid}) is gone; 1 process ended.`),
    ]);
  });

  it('[K70] shutdown ends a server that is only just starting, and no keeper comes after it', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    const home = openHome(place.home);
    // As if another were starting the keeper: the server waits for that one.
    const release = tryStartLock(home);
    expect(release).toBeDefined();
    const server = place.start('serve', '--json');
    onCleanup(() => void server.child.kill('SIGKILL'));
    const lock = join(home.folder, 'server.lock');
    await untilIn(home.folder, () => readNote<ServerNote>(lock)?.starting !== undefined);
    const shutdown = place.start('shutdown');
    await Promise.race([server.ended, shutdown.ended]);
    release?.();
    const pid = server.child.pid ?? 0;
    expect(await shutdown.ended).toMatchObject({
      code: 0,
      stdout: `The server (pid ${pid}) is gone.\nNo keeper is running for ${place.home}.\n`,
    });
    expect(isAlive(readEntry(pid))).toBe(false);
    expect(lockHolder(home.lock)).toBeUndefined();
  });

  it('[K70] shutdown waits for a keeper that is being started, and ends it', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    const home = openHome(place.home);
    const release = tryStartLock(home);
    const shutdown = place.start('shutdown');
    onCleanup(() => void shutdown.child.kill('SIGKILL'));
    const script = join(root, 'dist/keeper/main.js');
    const started = new Running(['--home', place.home], { script });
    await untilIn(dirname(home.socket), () => existsSync(home.socket));
    release?.();
    expect(await shutdown.ended).toMatchObject({
      code: 0,
      stdout: `The keeper (pid ${started.child.pid}) is gone; no process was running.\n`,
    });
    await started.ended;
  });

  it('[K70] other commands wait for a keeper that is being started, and so for one that gives up', async () => {
    const place = new Place();
    onCleanup(() => place.close());
    mkdirSync(place.home, { mode: 0o700 });
    // As if a keeper had the home and did not listen yet.
    const lock = takeLock(openHome(place.home).lock);
    const status = place.start('status');
    const fds = `/proc/${status.child.pid}/fd`;
    const watches = (): boolean =>
      readdirSync(fds).some((fd) => nameOf(join(fds, fd)) === 'anon_inode:inotify');
    await Promise.race([turnsUntil(watches), status.ended]);
    lock?.release();
    expect(await status.ended).toMatchObject({
      stdout: `No keeper is running for ${place.home}. The next command that needs one starts it.\n`,
    });
  });
});

describeAtOnce('a keeper that stands still', () => {
  it('[K22] is ended by shutdown, and told of by every other command', async ({
    onTestFinished,
  }) => {
    const place = new Place();
    onTestFinished(() => place.close());
    const id = await place.background('sleep 1000');
    const pid = keeperOf(place);
    stopForNow(pid, onTestFinished);
    const words = `The keeper (pid ${pid}) does not answer: it is stopped; "kill -CONT ${pid}" continues it.`;
    const asked = [['status'], ['ps'], ['logs', id], ['run', 'true'], ['stop', id]];
    const told = await Promise.all(asked.map((args) => place.run(...args)));
    for (const { stderr } of told) expect(stderr).toContain(words);
    // What `run` itself cannot do is never taken for the code of its process.
    expect(told.map(({ code }) => code)).toEqual([11, 11, 11, 125, 11]);
    expect(await place.run('shutdown')).toMatchObject({
      code: 0,
      stdout: `The keeper (pid ${pid}) is gone; 1 process ended.\n`,
    });
  });

  it('[K22] lets restart leave the server in place', async ({ onTestFinished }) => {
    const place = new Place();
    onTestFinished(() => place.close());
    const { result: before } = await place.json('restart');
    const pid = keeperOf(place);
    stopForNow(pid, onTestFinished);
    expect(await place.run('restart')).toMatchObject({ code: 11 });
    process.kill(pid, 'SIGCONT');
    expect((await place.json('status')).result).toMatchObject({ server: { pid: before['pid'] } });
    await place.run('shutdown');
  });

  it('[K22] is told to calls that waited before it stopped, and its link is good again when it goes on', async ({
    onTestFinished,
  }) => {
    const place = new Place();
    onTestFinished(() => place.close());
    const id = await place.background('sleep 1000');
    const pid = keeperOf(place);
    const waiting = place.start('wait', id);
    const link = await connectKeeper({ home: place.home, env: {}, startIfMissing: false });
    const parked = link.wait('*', { waits: [{ id, for: [{ kind: 'exit' }] }] });
    const told = parked.catch((error: unknown) => error);
    stopForNow(pid, onTestFinished);
    expect(await told).toMatchObject({ code: 'not_answering' });
    await expect(link.health('*', {})).rejects.toMatchObject({ code: 'not_answering' });
    expect((await waiting.ended).code).toBe(11);
    process.kill(pid, 'SIGCONT');
    const again = await connectKeeper({ home: place.home, env: {}, startIfMissing: false });
    // The wait was given up in the keeper, too.
    expect((await again.health('*', {})).parkedWaits).toBe(0);
    expect((await link.get('*', { id })).state).toBe('running');
    await again.close();
    await link.close();
  });
});

/** Undefined once it is closed. */
function nameOf(fd: string): string | undefined {
  try {
    return readlinkSync(fd);
  } catch {
    return undefined;
  }
}

async function untilIn(folder: string, isSo: () => boolean): Promise<void> {
  const watcher = watch(folder);
  const changes = on(watcher, 'change');
  try {
    while (!isSo()) await changes.next();
  } finally {
    watcher.close();
  }
}

/** It goes on when the test is over, however that ends: nobody else could end it gently. */
function stopForNow(pid: number, onTestFinished: TestContext['onTestFinished']): void {
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => {
    if (isAlive(readEntry(pid))) process.kill(pid, 'SIGCONT');
  });
}
