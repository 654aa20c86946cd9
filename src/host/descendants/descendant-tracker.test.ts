import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FakeTable } from '../../../test/support/fake-table.ts';
import { temporaryFolder } from '../../../test/support/hosts.ts';
import { Nursery, planOf, shellPlan, turnsUntil } from '../../../test/support/recorder.ts';
import { systemClock } from '../../base/clock.ts';
import { MARKER_NAME } from '../start/environment.ts';
import { DescendantTracker, type Tracked } from './descendant-tracker.ts';
import { startPipeChild } from '../child/pipe-child.ts';
import { commandOf, nowTicks, readEntry, systemTable } from '../../system/proc-table.ts';

class Process implements Tracked {
  readonly facts: { readonly pid: number; readonly serial: string };
  rootAlive = true;
  reapedAtTicks = 0;
  settled = false;
  private readonly listeners = new Set<() => void>();

  constructor(pid: number, serial: string) {
    this.facts = { pid, serial };
  }

  wake(): void {
    for (const listener of this.listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

describe('a subreaper, over a table of its own', () => {
  let table: FakeTable;
  let clock: FakeClock;
  let tracker: DescendantTracker<Process>;
  const roots = new Set<number>();

  beforeEach(() => {
    roots.clear();
    table = new FakeTable();
    clock = new FakeClock();
    tracker = new DescendantTracker<Process>({
      clock,
      table,
      isSubreaper: true,
      isRoot: (pid) => roots.has(pid),
      settled: () => undefined,
    });
  });

  function start(serial: string): Process {
    const pid = table.fork(table.self, { marker: serial, leads: true });
    roots.add(pid);
    const process = new Process(pid, serial);
    tracker.started(process);
    return process;
  }

  function reap(pid: number): void {
    table.reap(pid);
    tracker.reaped(pid);
  }

  /** Its root ends. */
  async function end(process: Process): Promise<void> {
    const { pid } = process.facts;
    table.exit(pid);
    process.rootAlive = false;
    process.reapedAtTicks = table.ticks;
    roots.delete(pid);
    reap(pid);
    tracker.exited(process);
    await nextTurn();
  }

  async function endOrphan(pid: number): Promise<void> {
    table.exit(pid);
    reap(pid);
    await nextTurn();
  }

  /** A process that has ended and left a descendant in its own session. */
  async function daemon(serial: string): Promise<{ process: Process; pid: number }> {
    const process = start(serial);
    const pid = table.fork(process.facts.pid, { leads: true });
    await end(process);
    return { process, pid };
  }

  test('[D6] a process without descendants settles at its exit, one with an orphan at the end of that', async () => {
    const alone = start('alone');
    await end(alone);
    expect(alone.settled).toBe(true);
    const { process, pid } = await daemon('daemon');
    expect(process.settled).toBe(false);
    const child = table.fork(pid, {});
    await endOrphan(pid);
    expect(process.settled).toBe(false);
    await endOrphan(child);
    expect(process.settled).toBe(true);
  });

  test('[D12] the end of an orphan asks for nothing about the others, however many there are', async () => {
    const asked: number[] = [];
    for (const others of [0, 1, 50]) {
      for (let each = 0; each < others; each += 1) await daemon(`other-${others}-${each}`);
      const { process, pid } = await daemon(`one-${others}`);
      table.asked = 0;
      await endOrphan(pid);
      expect(process.settled).toBe(true);
      asked.push(table.asked);
    }
    expect(asked).toEqual([1, 1, 1]);
  });

  test('[D12] ends that come together are looked at together', async () => {
    const daemons = [];
    for (let each = 0; each < 20; each += 1) daemons.push(await daemon(`daemon-${each}`));
    table.asked = 0;
    for (const { pid } of daemons) {
      table.exit(pid);
      reap(pid);
    }
    await nextTurn();
    expect(daemons.map(({ process }) => process.settled)).toEqual(daemons.map(() => true));
    expect(table.asked).toBe(1);
  });

  test('[X31] an orphan of nobody is looked at once: later ends cost nothing for it', async () => {
    const asked: number[] = [];
    for (const strays of [0, 1, 50]) {
      for (let each = 0; each < strays; each += 1) {
        const process = start(`stray-${strays}-${each}`);
        const outer = table.fork(process.facts.pid, { leads: true, marker: undefined });
        table.fork(outer, {});
        await end(process);
      }
      const { process, pid } = await daemon(`one-${strays}`);
      table.asked = 0;
      await endOrphan(pid);
      expect(process.settled).toBe(true);
      asked.push(table.asked);
    }
    expect(asked).toEqual([1, 1, 1]);
  });

  test('[X40] an orphan without an owner, with processes below it, is not checked when others end', async () => {
    const hostile = start('hostile');
    const strays = Array.from({ length: 50 }, () => {
      const stray = table.fork(hostile.facts.pid, { leads: true, marker: undefined });
      return { stray, member: table.fork(stray, { marker: 'hostile' }) };
    });
    await end(hostile);
    for (let each = 0; each < 3; each += 1) {
      const { process, pid } = await daemon(`one-${each}`);
      table.asked = 0;
      await endOrphan(pid);
      expect([process.settled, table.asked]).toEqual([true, 1]);
    }
    expect(hostile.settled).toBe(false);
    // The exit of a process below is not reported to us: it is found by a check from time to time.
    for (const { stray, member } of strays) {
      table.exit(member);
      table.remove(member);
      expect(stray).toBeLessThan(member);
    }
    for (let turn = 0; turn < 4; turn += 1) {
      await end(start(`other-${turn}`));
      clock.advance(500);
      await nextTurn();
    }
    expect(hostile.settled).toBe(true);
  });

  test('[X31] an orphan of nobody is looked at again when its session turns out to be known', async () => {
    const process = start('process');
    const inner = table.fork(process.facts.pid, {});
    const member = table.fork(inner, { leads: true });
    const between = table.fork(member, {});
    const stray = table.fork(between, { marker: undefined });
    table.exit(between);
    table.remove(between);
    // A look at it while nobody knows the session that it is in.
    await end(start('other'));
    table.exit(inner);
    table.remove(inner);
    await end(process);
    await endOrphan(member);
    expect(process.settled).toBe(false);
    await endOrphan(stray);
    expect(process.settled).toBe(true);
  });

  test('[D13] an orphan stays known when it sheds its session and its marker', async () => {
    const { process, pid } = await daemon('daemon');
    table.become(pid, { marker: undefined, leads: true });
    const stranger = start('stranger');
    await end(stranger);
    expect([process.settled, stranger.settled]).toEqual([false, true]);
    expect((await tracker.find(process)).map((entry) => entry.pid)).toEqual([pid]);
    await endOrphan(pid);
    expect(process.settled).toBe(true);
  });

  test('[D13] an orphan that came before its process was known here is counted to it', async () => {
    const root = table.fork(table.self, { marker: 'late', leads: true });
    roots.add(root);
    const inner = table.fork(root, {});
    const orphan = table.fork(inner, { leads: true });
    table.exit(inner);
    table.remove(inner);
    const other = start('other');
    await end(other);
    const late = new Process(root, 'late');
    tracker.started(late);
    await end(late);
    expect(late.settled).toBe(false);
    await endOrphan(orphan);
    expect(late.settled).toBe(true);
  });

  test('[D13] a member below an orphan of nobody keeps its process from settling, until it has ended', async () => {
    const process = start('process');
    const outer = table.fork(process.facts.pid, {});
    const member = table.fork(outer, {});
    table.become(outer, { marker: undefined, leads: true });
    await end(process);
    expect(process.settled).toBe(false);
    table.exit(member);
    table.remove(member);
    expect(process.settled).toBe(false);
    clock.advance(1000);
    expect(process.settled).toBe(true);
  });

  test('[D13] during exec no process is reported as settled', async () => {
    const process = start('process');
    const child = table.fork(process.facts.pid, { leads: true });
    table.become(child, { blank: true, leads: true });
    await end(process);
    expect(process.settled).toBe(false);
    table.become(child, { blank: false, marker: 'process' });
    clock.advance(1000);
    expect(process.settled).toBe(false);
    await endOrphan(child);
    expect(process.settled).toBe(true);
  });

  test('[D23] descendants are found by parentage, whatever else is alive', async () => {
    const asked: number[] = [];
    for (const others of [0, 1, 50]) {
      for (let each = 0; each < others; each += 1) await daemon(`other-${others}-${each}`);
      const process = start(`one-${others}`);
      const inner = table.fork(process.facts.pid, { marker: undefined });
      const leaf = table.fork(inner, { leads: true });
      const between = table.fork(process.facts.pid, {});
      const orphan = table.fork(between, { leads: true });
      table.exit(between);
      table.remove(between);
      const found = async (): Promise<number[]> =>
        (await tracker.find(process)).map(({ pid }) => pid);
      expect(await found()).toEqual([leaf, inner, orphan]);
      table.asked = 0;
      await found();
      asked.push(table.asked);
    }
    expect(new Set(asked).size).toBe(1);
    expect(table.walks).toBe(0);
  });

  test('[D23] a member below an orphan of nobody is found, and that orphan is not', async () => {
    const process = start('process');
    const outer = table.fork(process.facts.pid, {});
    const member = table.fork(outer, {});
    table.become(outer, { marker: undefined, leads: true });
    await end(process);
    expect((await tracker.find(process)).map(({ pid }) => pid)).toEqual([member]);
  });

  test('[D22] a walk that meets a process in exec settles nothing', async () => {
    const process = start('process');
    process.rootAlive = false;
    const other = table.fork(1, { marker: 'process', leads: true, blank: true });
    table.remove(process.facts.pid);
    await tracker.restored([process]);
    expect(process.settled).toBe(false);
    table.become(other, { blank: false });
    expect((await tracker.survivors(process)).survivors.map(({ pid }) => pid)).toEqual([other]);
    table.remove(other);
    await tracker.survivors(process);
    expect(process.settled).toBe(true);
  });

  test('[D24] a member that forks and ends during a walk does not hide its child', async () => {
    const process = start('process');
    process.rootAlive = false;
    table.remove(process.facts.pid);
    const member = table.fork(1, { marker: 'process', leads: true });
    const list = table.allPids.bind(table);
    let child = 0;
    table.allPids = () => {
      const pids = list();
      if (child > 0) return pids;
      child = table.fork(member, {});
      table.remove(member);
      return pids;
    };
    await tracker.restored([process]);
    expect(process.settled).toBe(false);
    expect((await tracker.find(process)).map(({ pid }) => pid)).toEqual([child]);
  });

  test('[D13] a root whose number is used again at once is not taken for the one before', async () => {
    const first = start('first');
    const { pid } = first.facts;
    table.exit(pid);
    first.rootAlive = false;
    first.reapedAtTicks = table.ticks;
    reap(pid);
    // The exit of the first is handled when the second has its number.
    table.nextPid = pid;
    const second = start('second');
    expect(second.facts.pid).toBe(pid);
    tracker.exited(first);
    await nextTurn();
    expect([first.settled, second.settled]).toEqual([true, false]);
    const orphan = table.fork(pid, { leads: true });
    await end(second);
    expect(second.settled).toBe(false);
    await endOrphan(orphan);
    expect(second.settled).toBe(true);
  });

  test('[D14] without a free descriptor nothing is called settled, and it is looked at again', async () => {
    const process = start('process');
    table.shortage = true;
    await end(process);
    expect(process.settled).toBe(false);
    expect(await tracker.search(process)).toEqual({ found: [], unsearched: 'too_many_files' });
    expect(process.settled).toBe(false);
    table.shortage = false;
    clock.advance(1000);
    expect(process.settled).toBe(true);
  });

  test('[D15] what an earlier keeper left is found by one walk, and settles when it is gone', async () => {
    const left = Array.from({ length: 30 }, (_, each) => {
      const pid = table.fork(1, { marker: `left-${each}`, leads: true });
      const process = new Process(pid, `left-${each}`);
      process.rootAlive = false;
      return process;
    });
    const gone = new Process(9999, 'gone');
    gone.rootAlive = false;
    await tracker.restored([...left, gone]);
    // A walk lists all processes until there are no new ones.
    expect(table.walks).toBe(2);
    expect(left.every(({ settled }) => !settled)).toBe(true);
    expect(gone.settled).toBe(true);
    // An end among our own says nothing about them, and costs nothing for them.
    const { pid } = await daemon('daemon');
    table.asked = 0;
    await endOrphan(pid);
    expect(table.asked).toBe(1);
    for (const { facts } of left) table.remove(facts.pid);
    await tracker.checkUnreported();
    expect(left.every(({ settled }) => settled)).toBe(true);
  });
});

describe('a subreaper among real processes', () => {
  let nursery: Nursery;
  let tracker: DescendantTracker<Process>;

  beforeEach(() => {
    nursery = new Nursery({ adopts: true, onReaped: (pid) => tracker.reaped(pid) });
    tracker = new DescendantTracker<Process>({
      clock: systemClock,
      isSubreaper: true,
      isRoot: (pid) => nursery.reaper.has(pid),
      settled: () => undefined,
    });
    nursery.posix.setSubreaper(true);
  });
  afterEach(async () => {
    await tracker.endStrays();
    await nursery.endAll();
    nursery.posix.setSubreaper(false);
  });

  test('[D22] a daemon that execs again and again is known by its marker, and ends by one signal', async () => {
    const script = join(temporaryFolder(), 'again');
    writeFileSync(script, '#!/bin/sh\nexec "$0"\n', { mode: 0o700 });
    // The second is longer than what is read of an environment at once, with the marker at its end.
    for (const longBytes of [0, 20_000, 0, 0]) {
      const serial = `again-${longBytes}`;
      const long = `LONG=${'x'.repeat(longBytes)}`;
      const env = [...shellPlan('').env, long, `${MARKER_NAME}=${serial}`];
      const plan = shellPlan(`setsid ${script} >/dev/null 2>&1 & echo $!`, { env });
      const { child, recorder } = await nursery.start(startPipeChild, plan);
      const process = new Process(child.pid, serial);
      tracker.started(process);
      await recorder.done();
      process.rootAlive = false;
      process.reapedAtTicks = nowTicks() + 1;
      tracker.exited(process);
      const daemon = Number(recorder.text());
      await turnsUntil(() => readEntry(daemon)?.session === daemon);
      let missed = 0;
      for (let look = 0; look < 10_000; look += 1)
        if (systemTable.markersOf(daemon, MARKER_NAME).length === 0) missed += 1;
      expect(missed).toBe(0);
      expect(process.settled).toBe(false);
      const found = await tracker.find(process);
      expect(tracker.signal(process, found, 'SIGKILL').reached).toEqual([daemon]);
      await turnsUntil(() => process.settled);
    }
  });

  test('[D22] a daemon without any environment has no marker, and is not taken for one that execs', async () => {
    const { child, recorder } = await nursery.start(
      startPipeChild,
      shellPlan('exec env -i /bin/sleep 1000', { stdin: 'pipe' }),
    );
    await turnsUntil(() => commandOf(child.pid) === '/bin/sleep 1000');
    expect(systemTable.markersOf(child.pid, MARKER_NAME)).toEqual([]);
    globalThis.process.kill(child.pid, 'SIGKILL');
    await recorder.exit();
  });

  test('[D11] with 800 children of its own, a daemon that comes last is still seen', async () => {
    const { posix, reaper } = nursery;
    for (let child = 0; child < 800; child += 1) {
      const birth = reaper.beginSpawn();
      // In this thread: the kernel lists children by the thread that started them.
      const pid = await posix.spawn(planOf(['/bin/sleep', '1000']), { output: 1, errors: 2 }, true);
      birth.register(pid, () => undefined);
    }
    const env = [...shellPlan('').env, `${MARKER_NAME}=the-last`];
    const script = 'setsid sleep 1000 >/dev/null 2>&1 & echo $!';
    const { child, recorder } = await nursery.start(startPipeChild, shellPlan(script, { env }));
    const last = new Process(child.pid, 'the-last');
    tracker.started(last);
    await recorder.done();
    last.rootAlive = false;
    last.reapedAtTicks = nowTicks() + 1;
    tracker.exited(last);
    await nextTurn();
    await nextTurn();
    expect(last.settled).toBe(false);
    const daemon = Number(recorder.text());
    expect((await tracker.find(last)).map(({ pid }) => pid)).toEqual([daemon]);
    expect(systemTable.newChildren(() => false).at(-1)).toBe(daemon);
    expect(tracker.signal(last, await tracker.find(last), 'SIGKILL').reached).toEqual([daemon]);
    await turnsUntil(() => last.settled);
  });
});
