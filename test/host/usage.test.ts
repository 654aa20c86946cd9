// What a process without a cgroup of its own has cost, held against GNU time, which asks the kernel for the same.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { HostApi } from '../../src/protocol/host-api.ts';
import type { ProcessInfo, Usage } from '../../src/protocol/process.ts';
import {
  OWNER,
  inProcess,
  leaveStray,
  outputText,
  overKeeper,
  startProcess,
  temporaryFolder,
  waitFor,
} from '../support/hosts.ts';

const run = promisify(execFile);
const TIME = '/usr/bin/time';
const node = process.execPath;
/** More than a keeper ever has. */
const LARGE_BYTES = 300_000_000;
/** Time and the shell around it work a little themselves; a loop of this length is far more. */
const OWN_MS = 500;
const busy = (ms: number): string =>
  `${node} -e 'while (process.cpuUsage().user + process.cpuUsage().system < ${ms}e3);'`;

async function ended(host: HostApi, command: string): Promise<ProcessInfo> {
  const id = await startProcess(host, { command });
  await waitFor(host, id, { kind: 'settled' });
  await waitFor(host, id, { kind: 'closed' });
  return host.get(OWNER, { id });
}

function usageOf({ usage }: ProcessInfo): Usage {
  if (!usage) throw new Error('it says nothing of what it used');
  return usage;
}

describe('what a process used', () => {
  it.skipIf(!existsSync(TIME))('[H70] is what GNU time says of the same programs', async () => {
    const host = await overKeeper({ groups: false });
    for (const command of [
      busy(300),
      `${node} -e 'Buffer.alloc(${LARGE_BYTES}, 1)'`,
      `sh -c '${busy(200).replaceAll("'", `'"'"'`)} & ${busy(200).replaceAll("'", `'"'"'`)}; wait'`,
      `dd if=/dev/zero of=file bs=64k count=64 conv=fsync status=none`,
    ]) {
      const format = '%U %S %M %I %O';
      const info = await ended(host, `cd "$(mktemp -d)"; ${TIME} -f '${format}' ${command}`);
      const said = (await outputText(host, info.id)).trim().split(' ').map(Number);
      const [user = 0, system = 0, peakKb = 0, blocksRead = 0, blocksWritten = 0] = said;
      const usage = usageOf(info);
      const ms = (user + system) * 1000;
      // GNU time cuts each figure to hundredths of a second.
      expect(usage.userMs + usage.systemMs).toBeGreaterThanOrEqual(ms - 20);
      expect(usage.userMs + usage.systemMs).toBeLessThan(ms + OWN_MS);
      if (usage.peakMemoryBytes === undefined)
        expect(usage.peakMemoryAtMostBytes).toBeGreaterThanOrEqual(peakKb * 1024);
      else expect(usage.peakMemoryBytes).toBe(peakKb * 1024);
      expect(usage.readBytes).toBeGreaterThanOrEqual(blocksRead * 512);
      expect(usage.writtenBytes).toBeGreaterThanOrEqual(blocksWritten * 512);
      expect(usage).toMatchObject({ by: 'wait', complete: true });
    }
  });

  it('[H70] has an exact peak above that of the host, and only a bound below it', async () => {
    const host = await overKeeper({ groups: false });
    const small = usageOf(await ended(host, 'true'));
    expect(small.peakMemoryBytes).toBeUndefined();
    expect(small.peakMemoryAtMostBytes).toBeGreaterThan(0);
    const large = usageOf(await ended(host, `${node} -e 'Buffer.alloc(${LARGE_BYTES}, 1)'`));
    expect(large.peakMemoryBytes).toBeGreaterThan(LARGE_BYTES);
    expect(large.peakMemoryAtMostBytes).toBeUndefined();
  });

  it('[H70] is there from the exit on, in the completion too, and does not change the outcome', async () => {
    const host = await overKeeper({ groups: false });
    const id = await startProcess(host, { command: 'read _; exit 3', stdin: 'pipe' });
    expect((await host.get(OWNER, { id })).usage).toBeUndefined();
    await host.write(OWNER, { id, data: Buffer.from('\n') });
    await waitFor(host, id, { kind: 'exit' });
    const { outcome, usage } = await host.get(OWNER, { id });
    expect([outcome, usage?.by]).toEqual([{ kind: 'exit', code: 3 }, 'wait']);
    const { completions } = await host.completions(OWNER, { waitMs: 60_000 });
    expect(completions[0]?.usage?.by).toBe('wait');
    const terminal = await startProcess(host, { command: 'true', streams: 'pty' });
    await waitFor(host, terminal, { kind: 'exit' });
    expect((await host.get(OWNER, { id: terminal })).usage?.by).toBe('wait');
    const late = await startProcess(host, { command: 'sleep 1000', hardTimeoutMs: 1 });
    await waitFor(host, late, { kind: 'exit' });
    expect((await host.get(OWNER, { id: late })).outcome).toEqual({
      kind: 'timeout',
      afterMs: 1,
      signal: 'SIGTERM',
    });
  });

  it('[H71] counts an orphan of the root, also one that outlives it', async () => {
    const host = await overKeeper({ groups: false });
    const orphan = `(${busy(400)} > /dev/null 2>&1 &)`;
    const { userMs, systemMs, complete } = usageOf(await ended(host, orphan));
    expect(userMs + systemMs).toBeGreaterThanOrEqual(400);
    expect(complete).toBe(true);
  });

  it('[H71] says that it is not complete when an orphan cannot be counted for it', async () => {
    const host = await overKeeper({ groups: false });
    const holds = await startProcess(host, { command: 'read _', stdin: 'pipe' });
    for (const pid of await leaveStray(host)) {
      process.kill(pid, 'SIGKILL');
      // Until it has been reaped.
      await run('tail', ['--pid', String(pid), '-s', '0.02', '-f', '/dev/null']);
    }
    await host.write(OWNER, { id: holds, data: Buffer.from('\n') });
    await waitFor(host, holds, { kind: 'settled' });
    expect(usageOf(await host.get(OWNER, { id: holds })).complete).toBe(false);
    // Inside somebody's program orphans go elsewhere.
    const embedded = await inProcess();
    expect(usageOf(await ended(embedded, 'true')).complete).toBe(false);
  });

  it('[H71] survives the keeper, and is then called incomplete', async () => {
    const folder = temporaryFolder();
    const first = await overKeeper({ folder, groups: false });
    const { id, usage } = await ended(first, busy(200));
    process.kill(first.keeper.pid, 'SIGKILL');
    await first.ended;
    const second = await overKeeper({ folder, groups: false });
    expect((await second.get(OWNER, { id })).usage).toEqual({ ...usage, complete: false });
  });
});
