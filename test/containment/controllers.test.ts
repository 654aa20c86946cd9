// Limits that the kernel enforces by the controllers of cgroup v2, and what is told of them.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { StartSpec } from '../../src/protocol/operations.ts';
import type { ProcessInfo } from '../../src/protocol/process.ts';
import { fill, groupOfTests, hasControllers } from '../support/controllers.ts';
import { gate, onCleanup, OWNER, overKeeper, startProcess, waitFor } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const MiB = 1024 * 1024;
const MEMORY = 16 * MiB;
/** More than that, in millions of bytes. */
const TOO_MUCH = 30;
const RUNS = sized(10, 100);
/** A machine in user mode takes long for a page of memory. */
const TIMEOUT_MS = 600_000;
/** At the same time. */
const LANES = 5;
/** Of a processor, for each: alone, so many programs would have four times as much. */
const SHARE = 0.05;

async function ended(host: HostApi, spec: StartSpec): Promise<ProcessInfo> {
  const id = await startProcess(host, spec);
  await waitFor(host, id, { kind: 'settled' });
  await waitFor(host, id, { kind: 'closed' });
  return host.get(OWNER, { id });
}

async function manyTimes(host: HostApi, spec: StartSpec): Promise<ProcessInfo[]> {
  const all: ProcessInfo[] = [];
  const lane = async (): Promise<void> => {
    for (let left = RUNS / LANES; left > 0; left -= 1) all.push(await ended(host, spec));
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return all;
}

function sum(all: readonly ProcessInfo[], of: (info: ProcessInfo) => number): number {
  return all.reduce((total, each) => total + of(each), 0);
}

/** The group around all processes of a keeper. */
function groupOf(keeperPid: number): string {
  const own = groupOfTests();
  const base = readdirSync(own).find((name) => name.endsWith(`-${keeperPid}`)) ?? '';
  return join(own, base);
}

/** The group of the only process of a keeper. */
function groupOfOnly(keeperPid: number): string {
  const base = groupOf(keeperPid);
  const used = readdirSync(base).filter(
    (name) =>
      name.startsWith('hf-') && readFileSync(join(base, name, 'cgroup.procs'), 'utf8') !== '',
  );
  expect(used).toHaveLength(1);
  return join(base, used[0] ?? '');
}

describe.skipIf(!hasControllers)('a limit by cgroup', { timeout: TIMEOUT_MS }, () => {
  it(`[CT30] of memory: ${RUNS} of ${RUNS} programs that fill more are ended, at the limit`, async () => {
    const host = await overKeeper();
    const all = await manyTimes(host, { command: fill(TOO_MUCH), limits: { memory: MEMORY } });
    expect(all).toHaveLength(RUNS);
    for (const { confinement, causes, usage, outcome } of all) {
      expect(confinement).toEqual({ memory: { limit: MEMORY, by: 'cgroup' } });
      expect(causes).toEqual([{ kind: 'memory_limit', victims: 1 }]);
      expect(outcome?.kind === 'oom' || (outcome?.kind === 'exit' && outcome.code === 137)).toBe(
        true,
      );
      expect(usage).toMatchObject({ by: 'cgroup', complete: true, peakMemoryBytes: MEMORY });
    }
  });

  it(`[CT30] of processes: ${RUNS} of ${RUNS} programs that fork more are refused`, async () => {
    const host = await overKeeper();
    const command = 'for n in 1 2 3 4 5 6 7 8; do sleep 5 & done; wait';
    const all = await manyTimes(host, { command, limits: { pids: 5 } });
    expect(all).toHaveLength(RUNS);
    for (const { confinement, causes, usage, outcome } of all) {
      expect(confinement).toEqual({ pids: { limit: 5, by: 'cgroup' } });
      expect(causes).toEqual([{ kind: 'pids_limit', hits: expect.any(Number) as number }]);
      expect(outcome).toEqual({ kind: 'exit', code: 2 });
      expect(usage?.peakProcesses).toBe(5);
    }
  });

  it(`[CT30] of processors: ${RUNS} of ${RUNS} programs are held to their share`, async () => {
    const host = await overKeeper();
    const command = `perl -e '1 while (times)[0] + (times)[1] < 0.1'`;
    const all = await manyTimes(host, { command, limits: { cpus: SHARE } });
    expect(all).toHaveLength(RUNS);
    for (const { confinement, causes, usage, outcome } of all) {
      expect(confinement).toEqual({ cpus: { limit: SHARE, by: 'cgroup' } });
      expect([outcome, causes]).toEqual([{ kind: 'exit', code: 0 }, undefined]);
      expect(usage?.throttledMs).toBeGreaterThan(0);
    }
    // Of one program the last period counts too much: the kernel takes back what was too much in the next one.
    const used = sum(all, ({ usage }) => (usage?.userMs ?? 0) + (usage?.systemMs ?? 0));
    expect(used).toBeLessThan(sum(all, ({ durationMs }) => durationMs) * SHARE * 2);
  });
});

describe.skipIf(!hasControllers)('what is told of a limit by cgroup', () => {
  it('[CT31] a grandchild was ended, and the shell went on', async () => {
    const host = await overKeeper();
    const limits = { memory: MEMORY };
    const passedOn = await ended(host, { command: `${fill(TOO_MUCH)}; exit $?`, limits });
    expect([passedOn.outcome, passedOn.causes]).toEqual([
      { kind: 'exit', code: 137 },
      [{ kind: 'memory_limit', victims: 1 }],
    ]);
    const wentOn = await ended(host, {
      command: `${fill(TOO_MUCH)}; ${fill(TOO_MUCH)}; exit 7`,
      limits,
    });
    expect([wentOn.outcome, wentOn.causes]).toEqual([
      { kind: 'exit', code: 7 },
      [{ kind: 'memory_limit', victims: 2 }],
    ]);
    expect(wentOn.usage?.peakMemoryBytes).toBe(MEMORY);
  });

  it('[CT31] the root itself was ended: the outcome is "oom"', async () => {
    const host = await overKeeper();
    const argv = ['perl', '-e', '$x = "x" x 30_000_000'];
    const info = await ended(host, { argv, limits: { memory: MEMORY } });
    expect([info.outcome, info.causes]).toEqual([
      { kind: 'oom', signal: 'SIGKILL' },
      [{ kind: 'memory_limit', victims: 1 }],
    ]);
  });

  it('[CT31] all at once, where the group says so: every victim counts, and what each of them has used', async () => {
    const host = await overKeeper();
    const id = await startProcess(host, {
      command: `read _; ${fill(TOO_MUCH)}; exit 7`,
      stdin: 'pipe',
      limits: { memory: MEMORY },
    });
    writeFileSync(join(groupOfOnly(host.keeper.pid), 'memory.oom.group'), '1');
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    await waitFor(host, id, { kind: 'settled' });
    const { outcome, causes, usage } = await host.get(OWNER, { id });
    expect([outcome, causes]).toEqual([
      { kind: 'oom', signal: 'SIGKILL' },
      [{ kind: 'memory_limit', victims: expect.any(Number) as number }],
    ]);
    // The kernel counts the program that it has chosen again when it ends the whole group.
    expect([2, 3]).toContain(causes?.[0]?.kind === 'memory_limit' && causes[0].victims);
    expect(usage).toMatchObject({ by: 'cgroup', complete: true, peakMemoryBytes: MEMORY });
  });

  it('[CT31] two programs within the limit: nothing is said, and the peak is that of both together', async () => {
    const host = await overKeeper();
    const hold = fill(20, '$| = 1; print "full\\n"; sysread STDIN, $y, 1');
    const command = `exec 3<&0; ${hold} <&3 & ${hold} <&3 & wait`;
    const id = await startProcess(host, { command, stdin: 'pipe', limits: { memory: 120 * MiB } });
    const { offset } = await waitFor(host, id, { kind: 'text', text: 'full' });
    await waitFor(host, id, { kind: 'text', text: 'full', from: offset });
    await host.write(OWNER, { id, data: Buffer.from('\n\n') });
    await waitFor(host, id, { kind: 'settled' });
    const { outcome, causes, usage } = await host.get(OWNER, { id });
    expect([outcome, causes]).toEqual([{ kind: 'exit', code: 0 }, undefined]);
    expect(usage?.peakMemoryBytes).toBeGreaterThan(40_000_000);
  });

  it('[CT32] a limit that struck after the root had ended is told too', async () => {
    const host = await overKeeper();
    const { wait, open } = gate();
    const command = `(${wait}; ${fill(TOO_MUCH)}) > /dev/null 2>&1 & exit 0`;
    const id = await startProcess(host, { command, limits: { memory: MEMORY } });
    await waitFor(host, id, { kind: 'closed' });
    expect((await host.get(OWNER, { id })).causes).toBeUndefined();
    open();
    await waitFor(host, id, { kind: 'settled' });
    const { outcome, causes } = await host.get(OWNER, { id });
    expect([outcome, causes]).toEqual([
      { kind: 'exit', code: 0 },
      [{ kind: 'memory_limit', victims: 1 }],
    ]);
  });

  it('[CT33] a victim of a limit around the keeper is not said to be one of the own limit', async () => {
    const host = await overKeeper();
    const base = groupOf(host.keeper.pid);
    writeFileSync(join(base, 'memory.max'), String(MEMORY));
    onCleanup(() => writeFileSync(join(base, 'memory.max'), 'max'));
    const argv = ['perl', '-e', '$x = "x" x 30_000_000'];
    const info = await ended(host, { argv });
    expect([info.outcome, info.causes]).toEqual([
      { kind: 'oom', signal: 'SIGKILL' },
      [{ kind: 'out_of_memory', victims: 1 }],
    ]);
  });

  it('[CT34] a program that wrote itself into another group is not said to be counted whole', async () => {
    const host = await overKeeper();
    const burn = `perl -e '1 while (times)[0] + (times)[1] < 0.1'`;
    const info = await ended(host, {
      command: `echo $$ > ${groupOfTests()}/cgroup.procs; ${burn}`,
    });
    expect(info.usage).toMatchObject({ by: 'wait', complete: false });
    const { userMs = 0, systemMs = 0 } = info.usage ?? {};
    expect(userMs + systemMs).toBeGreaterThanOrEqual(90);
  });
});
