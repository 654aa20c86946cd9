import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { afterEach, describe, expect, test, vi } from 'vitest';

import { planOf, requirePosix, turnsUntil } from '../../../test/support/recorder.ts';
import type { ExitStatus } from './child.ts';
import { readEntry } from '../../system/proc-table.ts';
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
function startShell(script: string): Promise<number> {
  return posix.spawn(planOf(['/bin/sh', '-c', script]), { output: 1, errors: 2 });
}

const ending = (reaper: Reaper, pid: number): Promise<ExitStatus> =>
  new Promise((resolve) => reaper.beginSpawn().register(pid, resolve));

const isZombie = (pid: number) => readEntry(pid)?.state === 'Z';

describe('endings', () => {
  test('[R1] every child is reported once, in any order of exits', async () => {
    const reaper = newReaper();
    const reported: number[] = [];
    const pids = await Promise.all(
      Array.from({ length: 40 }, (_, index) => startShell(`exit ${index}`)),
    );
    await Promise.all(
      pids.map(
        (pid, index) =>
          new Promise<void>((resolve) => {
            reaper.beginSpawn().register(pid, (status) => {
              reported.push(pid);
              expect(status).toEqual({ code: index });
              resolve();
            });
          }),
      ),
    );
    expect(reported.toSorted((a, b) => a - b)).toEqual(pids.toSorted((a, b) => a - b));
    expect(reaper.pids()).toEqual([]);
  });

  test('[R1] a child that died before it was registered is reported later, not during the call', async () => {
    const pid = await startShell('exit 5');
    await turnsUntil(() => isZombie(pid));
    const reaper = newReaper();
    let status: ExitStatus | undefined;
    reaper.beginSpawn().register(pid, (ended) => (status = ended));
    expect(status).toBeUndefined();
    await turnsUntil(() => status !== undefined);
    expect(status).toEqual({ code: 5 });
  });

  test('[R1] a child that other code reaped is reported without an outcome, never as exit 0', async () => {
    const pid = await startShell('exit 0');
    await turnsUntil(() => isZombie(pid));
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
    const pid = await startShell('kill -STOP $$; exit 6');
    const ended = ending(reaper, pid);
    await turnsUntil(() => readEntry(pid)?.state === 'T');
    expect(reaper.pids()).toEqual([pid]);
    process.kill(pid, 'SIGCONT');
    expect(await ended).toEqual({ code: 6 });
  });

  test('[R6] a stopped child can be killed', async () => {
    const reaper = newReaper();
    const pid = await startShell('kill -STOP $$');
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
    const stranger = await startShell('exit 44');
    await turnsUntil(() => isZombie(stranger));
    const ours = Array.from({ length: 10 }, async (_, index) =>
      ending(reaper, await startShell(`exit ${index}`)),
    );
    const nodes = Array.from({ length: 10 }, (_, index) =>
      once(spawn('sh', ['-c', `exit ${index + 100}`]), 'exit'),
    );
    expect(await Promise.all(ours)).toEqual(ours.map((_, code) => ({ code })));
    expect(await Promise.all(nodes)).toEqual(nodes.map((_, index) => [index + 100, null]));
    expect(isZombie(stranger)).toBe(true);
    expect(posix.wait(stranger)?.status).toBe(44 << 8);
  });

  test('[R3] an adopting reaper reaps orphans, tells their end, and still tells its own children', async () => {
    const orphans = new Map<number, ExitStatus>();
    const reaper = newReaper({ adopts: true, onOrphan: (pid, status) => orphans.set(pid, status) });
    posix.setSubreaper(true);
    try {
      const birth = reaper.beginSpawn();
      const root = await startShell('(sh -c "exit 9" & exit 8) & exit 3');
      const ended = await new Promise((resolve) => birth.register(root, resolve));
      expect(ended).toEqual({ code: 3 });
      await turnsUntil(() => orphans.size === 2);
      expect([...orphans.values()]).toEqual(expect.arrayContaining([{ code: 8 }, { code: 9 }]));
      expect(posix.peekEnded()).toBeUndefined();
    } finally {
      posix.setSubreaper(false);
    }
  });
});

describe('births', () => {
  test('[R8] a child that ends before its number is known is not an orphan, and is reported when its pid is known', async () => {
    const orphans: number[] = [];
    const reaper = newReaper({ adopts: true, onOrphan: (pid) => orphans.push(pid) });
    const births = [reaper.beginSpawn(), reaper.beginSpawn()];
    const pid = await startShell('exit 5');
    await turnsUntil(() => isZombie(pid));
    process.emit('SIGCHLD', 'SIGCHLD');
    expect(await new Promise((resolve) => births[1]?.register(pid, resolve))).toEqual({ code: 5 });
    births[0]?.failed();
    expect(orphans).toEqual([]);
  });

  test('[R8] who is still unknown when every birth is over that could have been his is an orphan', async () => {
    const orphans: number[] = [];
    const reaper = newReaper({ adopts: true, onOrphan: (pid) => orphans.push(pid) });
    const births = [reaper.beginSpawn(), reaper.beginSpawn()];
    const orphan = await startShell('exit 5');
    await turnsUntil(() => isZombie(orphan));
    process.emit('SIGCHLD', 'SIGCHLD');
    expect([isZombie(orphan), orphans]).toEqual([true, []]);
    // One that begins later cannot have been his.
    const later = reaper.beginSpawn();
    const known = await startShell('exit 0');
    const other = await startShell('exit 0');
    births[0]?.register(known, () => undefined);
    births[1]?.register(other, () => undefined);
    await turnsUntil(() => orphans.length > 0);
    expect(orphans).toEqual([orphan]);
    later.failed();
    await turnsUntil(() => reaper.pids().length === 0);
  });
});

describe('the event loop', () => {
  test('[R4] it is held while a child is registered and let go after the last', async () => {
    // Not by counting the loop's timers: the test runner has some too.
    const set = vi.spyOn(globalThis, 'setInterval');
    const reaper = newReaper();
    const anchor = set.mock.results[0]?.value as NodeJS.Timeout;
    expect(anchor.hasRef()).toBe(false);
    const pid = await startShell('kill -STOP $$');
    const other = await startShell('exit 0');
    const endings = [ending(reaper, pid), ending(reaper, other)];
    expect(anchor.hasRef()).toBe(true);
    await endings[1];
    expect(anchor.hasRef()).toBe(true);
    process.kill(pid, 'SIGKILL');
    await endings[0];
    expect(anchor.hasRef()).toBe(false);
    vi.restoreAllMocks();
  });

  test('[R7] a closed reaper listens no more, holds nothing and takes nobody', async () => {
    const listeners = process.listenerCount('SIGCHLD');
    const set = vi.spyOn(globalThis, 'setInterval');
    const cleared = vi.spyOn(globalThis, 'clearInterval');
    const reaper = newReaper();
    const anchors = set.mock.results.map(({ value }) => value as NodeJS.Timeout);
    expect(process.listenerCount('SIGCHLD')).toBe(listeners + 1);
    const pid = await startShell('exit 1');
    reaper.beginSpawn().register(pid, () => {});
    reaper.close();
    expect(process.listenerCount('SIGCHLD')).toBe(listeners);
    expect(cleared.mock.calls.map(([timer]) => timer)).toEqual(expect.arrayContaining(anchors));
    vi.restoreAllMocks();
    expect(() => reaper.beginSpawn().register(pid, () => {})).toThrowError('closed');
    await turnsUntil(() => isZombie(pid));
    expect(posix.wait(pid)?.status).toBe(1 << 8);
  });
});
