import { readlinkSync } from 'node:fs';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Nursery, type Recorder, shellPlan, turnsUntil } from '../../../test/support/recorder.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import {
  belongsTo,
  type Family,
  groupAlive,
  livingBelow,
  signalGroup,
  signalMembers,
  signalPid,
} from './descendants.ts';
import { findFamilies } from './family-walk.ts';
import { startPipeChild } from '../child/pipe-child.ts';
import {
  commandOf,
  isAlive,
  nowTicks,
  type ProcessEntry,
  readEntry,
} from '../../system/proc-table.ts';
import { startPtyChild } from '../child/pty-child.ts';

let nursery: Nursery;
let orphans: number[];
let serial = 0;

beforeEach(() => {
  orphans = [];
  nursery = new Nursery({ adopts: true, onOrphan: (pid) => orphans.push(pid) });
  nursery.posix.setSubreaper(true);
});
afterEach(async () => {
  // Whatever a test left running has become a child of this process.
  for (const { family } of families.splice(0)) {
    for (let found = await findDescendants(family); found.length > 0;) {
      signalMembers(nursery.posix, family, found, 'SIGKILL');
      found = await findDescendants(family);
    }
  }
  await nursery.endAll();
  nursery.posix.setSubreaper(false);
});

interface Started {
  family: Family;
  readonly recorder: Recorder;
  readonly pid: number;
}
const families: Started[] = [];

async function findDescendants(family: Family): Promise<ProcessEntry[]> {
  return (await findFamilies([family])).found[0] ?? [];
}

/** Starts a shell with a marker of its own. */
async function start(script: string, options: Partial<LaunchPlan> = {}): Promise<Started> {
  serial += 1;
  const marker = { name: 'HOLDFAST_PROCESS', value: `test-${process.pid}-${serial}` };
  const plan = shellPlan(script, { stdin: 'pipe', ...options });
  const begin = plan.streams === 'pty' ? startPtyChild : startPipeChild;
  const { child, recorder } = await nursery.start(begin, {
    ...plan,
    env: [...plan.env, `${marker.name}=${marker.value}`],
  });
  const started = { family: { rootPid: child.pid, marker }, recorder, pid: child.pid };
  families.push(started);
  return started;
}

async function reaped(started: Started): Promise<Family> {
  await started.recorder.exit();
  started.family = { ...started.family, reapedAtTicks: nowTicks() };
  return started.family;
}

const pidsIn = (recorder: Recorder) => recorder.text().trim().split(/\s+/).map(Number);
const alive = (pid: number) => isAlive(readEntry(pid));

/** Prints its pid, in a session of its own, without a parent: the classic daemon. */
const escape = (command: string) => `(setsid sh -c 'echo $$; exec ${command}' &)`;

describe('who belongs', () => {
  test('[D2] a process that left by setsid and a double fork is found by its marker and killed by pidfd', async () => {
    const started = await start(`${escape('sleep 1000')}; echo ready; exit 0`);
    await started.recorder.until(
      () =>
        pidsIn(started.recorder).some((pid) => pid > 0) &&
        started.recorder.text().includes('ready'),
    );
    const family = await reaped(started);
    const escapee = pidsIn(started.recorder).find((pid) => pid > 0) ?? 0;
    expect(readEntry(escapee)).toMatchObject({ session: escapee, parent: process.pid });
    const found = await findDescendants(family);
    expect(found.map((entry) => entry.pid)).toEqual([escapee]);
    expect(signalMembers(nursery.posix, family, found, 'SIGKILL').reached).toEqual([escapee]);
    await turnsUntil(() => orphans.includes(escapee));
    expect(await findDescendants(family)).toEqual([]);
  });

  test('[D3] members of the session in groups of their own are found, and processes without a marker below them', async () => {
    const started = await start(
      'set -m; sleep 1000 & env -i setsid -w sleep 1000 & echo ready; read x',
      {
        streams: 'pty',
      },
    );
    await started.recorder.printed('ready');
    const outside = (entry: ProcessEntry) => entry.session !== started.pid;
    let found = await findDescendants(started.family);
    while (!found.some(outside)) found = await findDescendants(started.family);
    const jobs = found.filter((entry) => !outside(entry));
    expect(jobs.every((entry) => entry.group !== started.pid)).toBe(true);
    expect(jobs.length).toBe(2);
    expect(found.filter(outside).length).toBe(1);
    expect(found.some((entry) => entry.pid === started.pid)).toBe(false);
    expect(signalMembers(nursery.posix, started.family, found, 'SIGKILL').reached.length).toBe(
      found.length,
    );
  });

  test('[D3] children come before their parents, and one proven only by its parent is reached with it', async () => {
    // The inner shell leaves session and marker behind; only its parent says whose it is.
    const started = await start(
      `sh -c 'env -i setsid -w /bin/sh -c "echo \\$\\$; exec sleep 1000"; true'; true`,
    );
    await started.recorder.printed('\n');
    const inner = pidsIn(started.recorder)[0] ?? 0;
    const found = await findDescendants(started.family);
    const order = found.map((entry) => entry.pid);
    expect(order[0]).toBe(inner);
    expect(belongsTo(started.family, inner)).toBe(true);
    expect(signalMembers(nursery.posix, started.family, found, 'SIGKILL').reached).toContain(inner);
    await turnsUntil(() => !alive(inner));
    expect(await started.recorder.exit()).toEqual({ code: 0 });
  });

  test('[D3] a value that only begins like the marker is another marker', async () => {
    const started = await start('echo ready; read x');
    await started.recorder.printed('ready');
    const { family } = started;
    const shorter = {
      ...family,
      marker: { ...family.marker, value: family.marker.value.slice(0, -1) },
      reapedAtTicks: 0,
    };
    expect(belongsTo({ ...family, reapedAtTicks: 0 }, started.pid)).toBe(true);
    expect(belongsTo(shorter, started.pid)).toBe(false);
  });

  test('[D9] a process is found by its marker from the moment in which it was started, 100 times', async () => {
    for (let run = 0; run < 100; run += 1) {
      const started = await start('read x');
      // The numbers prove nothing here: only the marker counts.
      const found = await findDescendants({ ...started.family, reapedAtTicks: 0 });
      expect(found.map(({ pid }) => pid)).toEqual([started.pid]);
      process.kill(started.pid, 'SIGKILL');
      await started.recorder.exit();
      families.pop();
    }
  });

  test('[D5] a session number proves nothing about who was born after the root was reaped', async () => {
    // To this family the stranger is exactly what a reused number looks like: same session, born later, other marker.
    const stranger = await start('sleep 1000 & echo ready; read x');
    await stranger.recorder.printed('ready');
    const marker = { name: 'HOLDFAST_PROCESS', value: 'another-process' };
    const dead: Family = {
      rootPid: stranger.pid,
      marker,
      reapedAtTicks: readEntry(stranger.pid)?.startTicks ?? 0,
    };
    expect(await findDescendants(dead)).toEqual([]);
    const members = await findDescendants(stranger.family);
    expect(members.length).toBe(1);
    expect(signalMembers(nursery.posix, dead, members, 'SIGKILL').reached).toEqual([]);
    expect(members.every(({ pid }) => alive(pid))).toBe(true);
  });

  test('[D5] a session number proves who was born before the root was reaped, marker or not', async () => {
    const started = await start('env -i sleep 1000 & echo $!; read x');
    await started.recorder.printed('\n');
    const child = pidsIn(started.recorder)[0] ?? 0;
    await turnsUntil(
      () => commandOf(child) === 'sleep 1000' && (readEntry(child)?.startTicks ?? 0) < nowTicks(),
    );
    process.kill(started.pid, 'SIGKILL');
    const family = await reaped(started);
    expect((await findDescendants(family)).map(({ pid }) => pid)).toEqual([child]);
  });
});

describe('signals', () => {
  test('[D4] a process that is not ours is held, looked at, and left alone', async () => {
    const ours = await start('read x');
    const other = await start('read x');
    const verify = (pid: number) => belongsTo(ours.family, pid);
    expect(signalPid(nursery.posix, other.pid, 'SIGKILL', verify)).toBe('not_ours');
    expect(signalPid(nursery.posix, process.pid, 'SIGKILL', verify)).toBe('not_ours');
    expect(signalPid(nursery.posix, 1, 'SIGKILL', verify)).toBe('not_ours');
    expect(alive(other.pid)).toBe(true);
    expect(signalPid(nursery.posix, ours.pid, 'SIGTERM', verify)).toBe('sent');
    expect(await ours.recorder.exit()).toEqual({ signal: 'SIGTERM' });
  });

  test('[D4] a process that has ended is reported as such, also if it ended between the search and the signal', async () => {
    const started = await start('exit 0');
    await started.recorder.exit();
    expect(signalPid(nursery.posix, started.pid, 'SIGKILL', () => true)).toBe('gone');
    const second = await start('read x');
    const result = signalPid(nursery.posix, second.pid, 'SIGKILL', () => {
      process.kill(second.pid, 'SIGKILL');
      while (nursery.posix.wait(second.pid) === undefined);
      return true;
    });
    expect(result).toBe('gone');
  });

  test('[D4] no descriptor is left behind by signals', async () => {
    const pidfds = () =>
      Array.from({ length: 64 }, (_, fd) => link(fd)).filter((target) => target.includes('pidfd'))
        .length;
    const started = await start('sleep 1000 & sleep 1000 & echo ready; read x');
    await started.recorder.printed('ready');
    signalMembers(nursery.posix, started.family, await findDescendants(started.family), 'SIGTERM');
    signalPid(nursery.posix, started.pid, 'SIGTERM', () => true);
    signalPid(nursery.posix, started.pid, 'SIGTERM', () => false);
    expect(pidfds()).toBe(0);
    expect(() => signalPid(nursery.posix, process.pid, 'SIGWRONG', () => true)).toThrowError(
      'SIGWRONG',
    );
    expect(pidfds()).toBe(0);
  });

  test('[D7] a group is signalled by number, and its end is reported', async () => {
    const started = await start('sleep 1000 & sleep 1000 & echo ready; wait');
    await started.recorder.printed('ready');
    expect(groupAlive(started.pid)).toBe(true);
    expect(signalGroup(started.pid, 'SIGKILL')).toBe('sent');
    expect(await started.recorder.done()).toEqual({ signal: 'SIGKILL' });
    await turnsUntil(() => orphans.length === 2);
    expect(groupAlive(started.pid)).toBe(false);
    expect(signalGroup(started.pid, 'SIGKILL')).toBe('gone');
  });

  test('[D8] a stopped process takes KILL at once, and TERM once it is continued', async () => {
    const killed = await start('kill -STOP $$; echo never');
    await turnsUntil(() => readEntry(killed.pid)?.state === 'T');
    signalGroup(killed.pid, 'SIGKILL');
    expect(await killed.recorder.done()).toEqual({ signal: 'SIGKILL' });
    const ended = await start('kill -STOP $$; echo never');
    await turnsUntil(() => readEntry(ended.pid)?.state === 'T');
    signalGroup(ended.pid, 'SIGTERM');
    expect(readEntry(ended.pid)?.state).toBe('T');
    signalGroup(ended.pid, 'SIGCONT');
    expect(await ended.recorder.done()).toEqual({ signal: 'SIGTERM' });
    expect(ended.recorder.text()).toBe('');
  });
});

describe('whether a member is left', () => {
  test('[D1] a zombie is not alive, in a group or alone', async () => {
    // The inner shell is stopped before it can collect its child, which ends as a zombie in the same group.
    const started = await start(
      'sh -c "exec sh -c \'kill -STOP \\$PPID; echo gone\'" & exec sleep 1000',
    );
    await turnsUntil(() => readEntry(started.pid)?.state === 'T');
    await started.recorder.printed('gone');
    await turnsUntil(() => livingBelow([started.pid]).length === 1);
    expect(await findDescendants(started.family)).toEqual([]);
  });

  test('[D1] a group of zombies is not alive', async () => {
    // Expected, so that it is nobody's orphan: it stays a zombie until it is registered.
    const birth = nursery.reaper.beginSpawn();
    const pid = await nursery.posix.spawn(shellPlan('exit 0'), { output: 1, errors: 2 });
    await turnsUntil(() => readEntry(pid)?.state === 'Z');
    expect(() => process.kill(-pid, 0)).not.toThrow();
    expect(groupAlive(pid)).toBe(false);
    birth.register(pid, () => {});
    await turnsUntil(() => readEntry(pid) === undefined);
    expect(groupAlive(pid)).toBe(false);
  });

  test('[D6] what hangs below a living root is known, without looking at the whole machine', async () => {
    const started = await start('sh -c "sleep 1000 & echo \\$!; wait" & echo $!; read x');
    await started.recorder.until(() => pidsIn(started.recorder).length === 2);
    const below = livingBelow([started.pid]).map(({ pid }) => pid);
    const known = [started.pid, ...pidsIn(started.recorder)];
    expect(below.toSorted(ascending)).toEqual(known.toSorted(ascending));
  });
});

function link(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return '';
  }
}

function ascending(a: number, b: number): number {
  return a - b;
}
