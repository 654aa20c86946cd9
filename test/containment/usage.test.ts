// What processes are said to have used, beside what /usr/bin/time and the kernel's own counts say of the same programs.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { groupOfTests, hasControllers } from '../support/controllers.ts';
import { OWNER, overKeeper, startProcess, temporaryFolder, waitFor } from '../support/hosts.ts';
import { sized } from '../support/slow.ts';

const TIME = '/usr/bin/time';
// In user mode an exec takes 0.1 s, which time does not count of itself.
const inUserMode = readFileSync('/proc/cpuinfo', 'utf8').includes('User Mode Linux');
const hasTime = existsSync(TIME) && !inUserMode;
if (!hasTime)
  console.warn(
    `left out: usage beside ${TIME}, which ${inUserMode ? 'is too slow here' : 'is not installed'}`,
  );
const TIMEOUT_MS = 600_000;

const burn = (seconds: number): string => `perl -e '1 while (times)[0] + (times)[1] < ${seconds}'`;
const fill = (megabytes: number): string => `perl -e '$x = "x" x ${megabytes}e6'`;
const seq = 'seq 1 200000';
/** Of every kind: processor, memory, files, children, threads, pipes. */
const PROGRAMS = [
  'true',
  burn(0.05),
  burn(0.2),
  burn(0.4),
  fill(20),
  fill(60),
  fill(90),
  `${fill(30)}; ${fill(50)}`,
  `${fill(40)} & ${fill(40)} & wait`,
  `${burn(0.1)} & ${burn(0.1)} & ${burn(0.1)} & wait`,
  `${seq} | sort -n | tail -1`,
  `${seq} | gzip -9 | wc -c`,
  `${seq} | sha256sum`,
  `${seq} | awk '{ s += $1 } END { print s }'`,
  'for n in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done',
  'dd if=/dev/zero of=file bs=1M count=8 status=none; cat file file > other; rm file other',
  `${process.execPath} -e 'let s = 0; for (let n = 0; n < 3e6; n += 1) s += n'`,
  `${process.execPath} -e 'Buffer.alloc(50e6, 1)'`,
  'find /usr/bin -name "a*" | wc -l',
  'ls -lR /etc > /dev/null',
] as const;
const programs = PROGRAMS.slice(0, sized(4, PROGRAMS.length));

/** The largest difference that is allowed between two figures of the same thing. */
function near(figure: number, other: number, part: number, slack = 0): boolean {
  return Math.abs(figure - other) <= Math.max(slack, other * part);
}

describe.skipIf(!hasTime)('usage without a cgroup', { timeout: TIMEOUT_MS }, () => {
  it(`[CT35] is what time -v says of ${programs.length} programs`, async () => {
    const host = await overKeeper({ groups: false });
    const cwd = temporaryFolder();
    const told = [];
    for (const [at, program] of programs.entries()) {
      const report = join(cwd, `time-${at}`);
      const argv = [TIME, '-v', '-o', report, 'sh', '-c', program];
      const id = await startProcess(host, { argv, cwd });
      await waitFor(host, id, { kind: 'settled' });
      const { usage, outcome } = await host.get(OWNER, { id });
      const said = readFileSync(report, 'utf8');
      const figure = (name: string): number =>
        Number(new RegExp(`${name}[^:]*: ([\\d.]+)`).exec(said)?.[1]);
      const ms = (figure('User time') + figure('System time')) * 1000;
      const peak = figure('Maximum resident set size') * 1024;
      const usedMs = (usage?.userMs ?? 0) + (usage?.systemMs ?? 0);
      told.push({
        program,
        outcome,
        // time rounds each of two figures down to 10 ms.
        time: near(usedMs, ms, 0.05, 10) || near(usedMs, ms + 20, 0.05, 10) || { usedMs, ms },
        peak:
          usage?.peakMemoryBytes === undefined
            ? (usage?.peakMemoryAtMostBytes ?? 0) >= peak * 0.95
            : near(usage.peakMemoryBytes, peak, 0.05) || { usage, peak },
      });
    }
    expect(told).toEqual(
      programs.map((program) => ({
        program,
        outcome: { kind: 'exit', code: 0 },
        time: true,
        peak: true,
      })),
    );
  });
});

describe.skipIf(!hasControllers)('usage by cgroup', { timeout: TIMEOUT_MS }, () => {
  it(`[CT36] is what the group itself counts of ${programs.length} programs`, async () => {
    const host = await overKeeper();
    const cwd = temporaryFolder();
    const told = [];
    for (const program of programs) {
      // The shell stays while its group is read.
      const command = `${program}\necho done; read _`;
      const id = await startProcess(host, { command, cwd, stdin: 'pipe' });
      await waitFor(host, id, { kind: 'pattern', pattern: '^done$' });
      const counted = countsOf(host.keeper.pid);
      await host.write(OWNER, { id, data: Buffer.from('\n') });
      await waitFor(host, id, { kind: 'settled' });
      const { usage } = await host.get(OWNER, { id });
      const usedMs = (usage?.userMs ?? 0) + (usage?.systemMs ?? 0);
      told.push({
        program,
        complete: usage?.complete,
        time: near(usedMs, counted.ms, 0.05, 10) || { usedMs, counted },
        peak: near(usage?.peakMemoryBytes ?? 0, counted.peak, 0.05) || { usage, counted },
      });
    }
    expect(told).toEqual(
      programs.map((program) => ({ program, complete: true, time: true, peak: true })),
    );
  });
});

/** Of the only group with members. */
function countsOf(keeperPid: number): { ms: number; peak: number } {
  const own = groupOfTests();
  const base = join(own, readdirSync(own).find((name) => name.endsWith(`-${keeperPid}`)) ?? '');
  const read = (name: string, file: string): string => readFileSync(join(base, name, file), 'utf8');
  const [group = '', ...others] = readdirSync(base).filter(
    (name) => name.startsWith('hf-') && read(name, 'cgroup.procs') !== '',
  );
  expect(others).toEqual([]);
  const us = /^usage_usec (\d+)$/m.exec(read(group, 'cpu.stat'))?.[1];
  return { ms: Number(us) / 1000, peak: Number(read(group, 'memory.peak')) };
}
