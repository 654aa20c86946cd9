import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { afterEach, describe, expect, test } from 'vitest';

import { planOf, requirePosix, turnsUntil } from '../../test/support/recorder.ts';
import type { ExitStatus } from './child.ts';
import { readEntry } from './proc-table.ts';
import { decodeStatus, Reaper, type ReaperOptions } from './reaper.ts';

const posix = requirePosix();
const reapers: Reaper[] = [];

function newReaper(options: Partial<ReaperOptions> = {}): Reaper {
  const reaper = new Reaper({ posix, adopts: false, ...options });
  reapers.push(reaper);
  return reaper;
}

afterEach(async () => {
  for (const reaper of reapers.splice(0)) {
    for (const pid of reaper.pids()) process.kill(pid, 'SIGKILL');
    await turnsUntil(() => reaper.pids().length === 0);
    reaper.close();
  }
});

/** A shell without pipes: its output goes where ours goes. */
function startShell(script: string): number {
  return posix.spawn({ ...planOf(['/bin/sh', '-c', script]), stdio: { output: 1, errors: 2 } });
}

const ending = (reaper: Reaper, pid: number): Promise<ExitStatus> =>
  new Promise((resolve) => reaper.register(pid, resolve));

const isZombie = (pid: number) => readEntry(pid)?.state === 'Z';
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

describe('endings', () => {
  test('[R1] every child is told once, whoever ends first', async () => {
    const reaper = newReaper();
    const told: number[] = [];
    const pids = Array.from({ length: 40 }, (_, index) => startShell(`exit ${index}`));
    await Promise.all(
      pids.map(
        (pid, index) =>
          new Promise<void>((resolve) => {
            reaper.register(pid, (status) => {
              told.push(pid);
              expect(status).toEqual({ code: index });
              resolve();
            });
          }),
      ),
    );
    expect(told.toSorted((a, b) => a - b)).toEqual(pids.toSorted((a, b) => a - b));
    expect(reaper.pids()).toEqual([]);
  });

  test('[R1] a child that died before it was registered is told later, not during the call', async () => {
    const pid = startShell('exit 5');
    while (!isZombie(pid));
    const reaper = newReaper();
    let status: ExitStatus | undefined;
    reaper.register(pid, (ended) => (status = ended));
    expect(status).toBeUndefined();
    await turnsUntil(() => status !== undefined);
    expect(status).toEqual({ code: 5 });
  });

  test('[R1] a child that somebody else reaped is told without an outcome, never as exit 0', async () => {
    const pid = startShell('exit 0');
    while (!isZombie(pid));
    posix.wait(pid);
    expect(await ending(newReaper(), pid)).toEqual({});
  });

  test('[R5] a wait status is decoded into a code or the name of a signal', () => {
    expect(decodeStatus(0)).toEqual({ code: 0 });
    expect(decodeStatus(255 << 8)).toEqual({ code: 255 });
    expect(decodeStatus(9)).toEqual({ signal: 'SIGKILL' });
    // With the core-dump flag.
    expect(decodeStatus(11 | 0x80)).toEqual({ signal: 'SIGSEGV' });
    expect(decodeStatus(6)).toEqual({ signal: 'SIGABRT' });
    expect(decodeStatus(34)).toEqual({ signal: 'SIGRTMIN+0' });
    expect(decodeStatus(64)).toEqual({ signal: 'SIGRTMIN+30' });
  });

  test('[R6] stopping and continuing is no ending', async () => {
    const reaper = newReaper();
    const pid = startShell('kill -STOP $$; exit 6');
    const ended = ending(reaper, pid);
    await turnsUntil(() => readEntry(pid)?.state === 'T');
    expect(reaper.pids()).toEqual([pid]);
    process.kill(pid, 'SIGCONT');
    expect(await ended).toEqual({ code: 6 });
  });

  test('[R6] a stopped child can be killed', async () => {
    const reaper = newReaper();
    const pid = startShell('kill -STOP $$');
    const ended = ending(reaper, pid);
    await turnsUntil(() => readEntry(pid)?.state === 'T');
    process.kill(-pid, 'SIGKILL');
    expect(await ended).toEqual({ signal: 'SIGKILL' });
  });
});

describe('whose children', () => {
  test('[R2] without adopting, children of Node and of others are left to their owners', async () => {
    const reaper = newReaper();
    // Nobody has asked for this one's end: it stands first in the kernel's line.
    const stranger = startShell('exit 44');
    while (!isZombie(stranger));
    const ours = Array.from({ length: 10 }, (_, index) =>
      ending(reaper, startShell(`exit ${index}`)),
    );
    const nodes = Array.from({ length: 10 }, (_, index) =>
      once(spawn('sh', ['-c', `exit ${index + 100}`]), 'exit'),
    );
    expect(await Promise.all(ours)).toEqual(ours.map((_, code) => ({ code })));
    expect(await Promise.all(nodes)).toEqual(nodes.map((_, index) => [index + 100, null]));
    expect(isZombie(stranger)).toBe(true);
    expect(posix.wait(stranger)).toBe(44 << 8);
  });

  test('[R3] an adopting reaper reaps orphans, tells their end, and still tells its own children', async () => {
    const orphans = new Map<number, ExitStatus>();
    const reaper = newReaper({ adopts: true, onOrphan: (pid, status) => orphans.set(pid, status) });
    posix.setSubreaper(true);
    try {
      const root = startShell('(sh -c "exit 9" & exit 8) & exit 3');
      expect(await ending(reaper, root)).toEqual({ code: 3 });
      await turnsUntil(() => orphans.size === 2);
      expect([...orphans.values()]).toEqual(expect.arrayContaining([{ code: 8 }, { code: 9 }]));
      expect(posix.peekEnded()).toBeUndefined();
    } finally {
      posix.setSubreaper(false);
    }
  });
});

describe('the event loop', () => {
  test('[R4] it is held while a child is registered and let go after the last', async () => {
    const reaper = newReaper();
    const before = timers();
    const pid = startShell('kill -STOP $$');
    const other = startShell('exit 0');
    const endings = [ending(reaper, pid), ending(reaper, other)];
    expect(timers()).toBe(before + 1);
    await endings[1];
    expect(timers()).toBe(before + 1);
    process.kill(pid, 'SIGKILL');
    await endings[0];
    expect(timers()).toBe(before);
  });

  test('[R7] a closed reaper listens no more, holds nothing and takes nobody', () => {
    const [listeners, before] = [process.listenerCount('SIGCHLD'), timers()];
    const reaper = newReaper();
    expect(process.listenerCount('SIGCHLD')).toBe(listeners + 1);
    const pid = startShell('exit 1');
    reaper.register(pid, () => {});
    reaper.close();
    expect(process.listenerCount('SIGCHLD')).toBe(listeners);
    expect(timers()).toBe(before);
    expect(() => reaper.register(pid, () => {})).toThrowError('closed');
    while (!isZombie(pid));
    expect(posix.wait(pid)).toBe(1 << 8);
  });
});
