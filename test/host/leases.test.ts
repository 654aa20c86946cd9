// Leases, paced readers, counted reads and queued input: what a host keeps for whoever serves others with it.

import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { connectKeeper } from '../../src/keeper/connect.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import { isAlive, readEntry } from '../../src/system/proc-table.ts';
import { FakeClock } from '../support/fake-clock.ts';
import {
  describeHosts,
  failure,
  inProcess,
  overKeeper,
  startProcess,
  temporaryFolder,
  waitFor,
  OWNER,
} from '../support/hosts.ts';

const lease = { mode: 'open', holder: 'one', ttlMs: 60_000 } as const;

describeHosts((make) => {
  it("[CX23] when a lease runs out its owner's processes are ended, except the spared and those of others", async () => {
    const host = await make();
    const argv = ['sh', '-c', 'setsid sleep 600 & sleep 600'];
    const id = await startProcess(host, { argv });
    const spared = await startProcess(host, { argv, labels: { stay: '1' } });
    const { process: foreign } = await host.start('other', { argv });
    expect(await host.lease(OWNER, { ...lease, ttlMs: 50, spareLabel: 'stay' })).toEqual({
      held: true,
    });
    const { process } = await waitFor(host, id, { kind: 'settled' });
    expect(process.outcome).toMatchObject({ kind: 'signal', by: 'lease ran out' });
    expect((await host.get(OWNER, { id: spared })).state).toBe('running');
    expect((await host.get('other', { id: foreign.id })).state).toBe('running');
    expect(await failure(host.lease(OWNER, { ...lease, mode: 'renew' }))).toMatchObject({
      code: 'not_found',
    });
  });

  it('[CX23] a lease has one holder: it can be taken, and then only the new one renews it', async () => {
    const host = await make();
    expect(await failure(host.lease(OWNER, { ...lease, mode: 'take' }))).toMatchObject({
      code: 'not_found',
    });
    await host.lease(OWNER, lease);
    expect(await host.lease(OWNER, { ...lease, mode: 'renew' })).toEqual({ held: true });
    expect(await host.lease(OWNER, { ...lease, mode: 'take', holder: 'two' })).toEqual({
      held: true,
    });
    expect(await host.lease(OWNER, { ...lease, mode: 'renew', ttlMs: 0 })).toEqual({ held: false });
    expect(await host.lease(OWNER, { ...lease, mode: 'renew', holder: 'two' })).toEqual({
      held: true,
    });
    expect(await failure(host.lease('other', { ...lease, mode: 'renew' }))).toMatchObject({
      code: 'not_found',
    });
  });

  it('[H80] a lease by name ends what was started under it, and nothing else', async () => {
    const host = await make();
    const argv = ['sh', '-c', 'setsid sleep 600 & sleep 600'];
    for (const [owner, name] of [
      [OWNER, 'a'],
      [OWNER, 'b'],
      ['other', 'a'],
    ] as const)
      expect(await host.holdLease(owner, { name, ttlMs: 60_000 })).toEqual({});
    const first = await startProcess(host, { argv, lease: 'a' });
    const { process: second } = await host.start(OWNER, { argv, lease: 'b', streams: 'pty' });
    const { process: foreign } = await host.start('other', { argv, lease: 'a' });
    const free = await startProcess(host, { argv });
    expect(second.lease).toBe('b');
    await host.holdLease(OWNER, { name: 'a', ttlMs: 0 });
    const ended = await waitFor(host, first, { kind: 'settled' });
    expect(ended.process.outcome).toMatchObject({ kind: 'signal', by: 'lease ended' });
    await host.holdLease(OWNER, { name: 'b', ttlMs: 50 });
    const ranOut = await waitFor(host, second.id, { kind: 'settled' });
    expect(ranOut.process.outcome).toMatchObject({ by: 'lease ended' });
    expect((await host.get(OWNER, { id: free })).state).toBe('running');
    expect((await host.get('other', { id: foreign.id })).state).toBe('running');
    // Of a lease that is not open, nothing is left to end.
    expect(await host.holdLease(OWNER, { name: 'a', ttlMs: 0 })).toEqual({});
  });

  it('[H81] a start under a lease that is not open is refused; one whose lease ends meanwhile is ended', async () => {
    const host = await make();
    const argv = ['sleep', '600'];
    const refused = { code: 'lease_ended', message: expect.stringContaining('"a"') as string };
    expect(await failure(host.start(OWNER, { argv, lease: 'a' }))).toMatchObject(refused);
    await host.holdLease('other', { name: 'a', ttlMs: 60_000 });
    expect(await failure(host.start(OWNER, { argv, lease: 'a' }))).toMatchObject(refused);
    expect((await host.list(OWNER, {})).total).toBe(0);
    await host.holdLease(OWNER, { name: 'a', ttlMs: 60_000 });
    const begun = host.start(OWNER, { argv, lease: 'a' });
    await host.holdLease(OWNER, { name: 'a', ttlMs: 0 });
    const { process } = await begun;
    const { process: ended } = await waitFor(host, process.id, { kind: 'settled' });
    expect(ended.outcome).toMatchObject({ by: 'lease ended' });
    expect(await failure(host.start(OWNER, { argv, lease: 'a' }))).toMatchObject(refused);
  });

  it('[H83] a lease is no input of a keyed start: it attaches, and the process keeps the lease it has', async () => {
    const host = await make();
    await host.holdLease(OWNER, { name: 'a', ttlMs: 60_000 });
    const spec = { argv: ['sleep', '600'], key: 'k' };
    const { process } = await host.start(OWNER, { ...spec, lease: 'a' });
    for (const again of [{ lease: 'gone' }, {}])
      expect(await host.start(OWNER, { ...spec, ...again })).toMatchObject({
        attached: true,
        process: { id: process.id, lease: 'a' },
      });
  });

  it('[H84] leases by name are bounded; renewing is no new one, and ending one makes room', async () => {
    const host = await make({ limits: { leaseCount: 2 } });
    const hold = (name: string, ttlMs = 60_000) => host.holdLease(OWNER, { name, ttlMs });
    await hold('a');
    await hold('b');
    expect(await failure(hold('c'))).toMatchObject({
      code: 'limit_reached',
      message: expect.stringContaining('"leaseCount"') as string,
    });
    await hold('a');
    await hold('b', 0);
    expect(await hold('c')).toEqual({});
  });

  it('[CX24] a read can be asked for by a count of output and endings alone', async () => {
    const host = await make();
    const id = await startProcess(host, {
      argv: ['sh', '-c', 'while read a; do echo $a; done'],
      stdin: 'pipe',
      streams: 'separate',
    });
    for (const [index, word] of ['a', 'b', 'c'].entries()) {
      await host.write(OWNER, { id, data: Buffer.from(`${word}\n`) });
      await waitFor(host, id, { kind: 'text', text: word });
      expect(index).toBeLessThan(3);
    }
    await host.write(OWNER, { id, eof: true });
    await waitFor(host, id, { kind: 'closed' });
    const page = await host.read(OWNER, { id, afterCount: 2 });
    const events = [...decodeRecords(page.records)];
    const { uncounted } = page;
    const countOf = (seq: number): number =>
      seq - (uncounted?.before ?? 0) - (uncounted?.seqs.filter((each) => each <= seq).length ?? 0);
    const numbered = events
      .filter(({ seq }) => !uncounted?.seqs.includes(seq))
      .map(({ seq, kind }) => [countOf(seq), kind]);
    expect(numbered).toEqual([
      [3, 'output'],
      [4, 'exited'],
      [5, 'closed'],
    ]);
    expect(uncounted?.count).toBe(5);
    expect((await host.read(OWNER, { id, afterCount: 99 })).records.length).toBe(0);
  });

  it('[CX25] a reader that asked for it holds the process back, and loses nothing by being slow', async () => {
    const host = await make({ limits: { journalBytes: 4_000_000, journalHeadBytes: 1_000_000 } });
    const total = 20_000_000;
    const command = `read x; exec head -c ${total} /dev/zero`;
    const id = await startProcess(host, { command, stdin: 'pipe' });
    let [after, offset, bytes] = [0, 0, 0];
    for (let first = true; ; first = false) {
      const page = await host.read(OWNER, {
        id,
        after,
        offset,
        waitMs: 60_000,
        paceBytes: 1_000_000,
      });
      expect(page.missed).toBeUndefined();
      for (const event of decodeRecords(page.records))
        if (event.kind === 'output') bytes += event.data.length;
      ({ nextAfter: after, nextOffset: offset } = page);
      if (page.end) break;
      // It prints from when it is held back on: before the first read it would be ahead already.
      if (first) await host.write(OWNER, { id, data: Buffer.from('\n') });
    }
    expect(bytes).toBe(total);
  });

  it('[CX26] queued input is answered at once although the process takes none of it, and refused where it must be', async () => {
    const host = await make();
    const id = await startProcess(host, { argv: ['sleep', '600'], stdin: 'pipe' });
    const data = Buffer.alloc(1_000_000);
    expect(await host.write(OWNER, { id, data, queued: true, writeId: 'w' })).toMatchObject({
      bytes: data.length,
      repeated: false,
    });
    expect(
      await failure(host.write(OWNER, { id, data: Buffer.alloc(17_000_000), queued: true })),
    ).toMatchObject({ code: 'limit_reached' });
    const closed = await startProcess(host, { argv: ['sleep', '600'] });
    expect(await failure(host.write(OWNER, { id: closed, data, queued: true }))).toMatchObject({
      code: 'stdin_closed',
    });
  });

  it('[CX26] a write that was applied is known again although the process has ended since', async () => {
    const host = await make();
    const id = await startProcess(host, { argv: ['head', '-c', '1'], stdin: 'pipe' });
    const write = { id, data: Buffer.from('x'), writeId: 'w' };
    await host.write(OWNER, write);
    await waitFor(host, id, { kind: 'closed' });
    expect(await host.write(OWNER, write)).toMatchObject({ bytes: 1, repeated: true });
    expect(await failure(host.write(OWNER, { ...write, writeId: 'v' }))).toMatchObject({
      code: 'not_running',
    });
  });
});

it('[CX23] the keeper lets a lease run out although nobody is connected', async () => {
  const home = temporaryFolder();
  const link = await overKeeper({ folder: home });
  const id = await startProcess(link, { argv: ['sleep', '600'] });
  await link.lease(OWNER, { ...lease, ttlMs: 300 });
  await link.close();
  const later = await connectKeeper({ home, env: process.env });
  const met = await waitFor(later, id, { kind: 'exit' });
  expect(met.process.outcome).toMatchObject({ by: 'lease ran out' });
  await later.close();
});

it('[CX903] a lease outlives its keeper: who held it still does, and it runs out as before', async () => {
  const folder = temporaryFolder();
  const first = await overKeeper({ folder });
  const id = await startProcess(first, { argv: ['sleep', '600'] });
  await first.lease(OWNER, { ...lease, spareLabel: 'stay' });
  const { process: shortLived } = await first.start('other', { argv: ['sleep', '600'] });
  await first.lease('other', { ...lease, holder: 'three', ttlMs: 300 });
  const { pid } = await first.health('*', {});
  process.kill(pid, 'SIGKILL');
  await first.ended;
  const second = await overKeeper({ folder });
  expect(await second.lease(OWNER, { ...lease, mode: 'renew', holder: 'two' })).toEqual({
    held: false,
  });
  expect(await second.lease(OWNER, { ...lease, mode: 'renew' })).toEqual({ held: true });
  expect(await second.lease(OWNER, { ...lease, mode: 'take', holder: 'two' })).toEqual({
    held: true,
  });
  expect((await second.get(OWNER, { id })).state).toBe('lost');
  // Its time ran anew, and what was left of the process is ended with it.
  const settled = { waits: [{ id: shortLived.id, for: [{ kind: 'settled' } as const] }] };
  await second.wait('other', settled);
  expect(await failure(second.lease('other', { ...lease, mode: 'renew' }))).toMatchObject({
    code: 'not_found',
  });
});

it('[CX903] a host that was closed leaves to the next the time that was left, and what is no list is passed by', async () => {
  const folder = temporaryFolder();
  const clock = new FakeClock();
  const first = await inProcess({ folder, clock });
  await first.lease(OWNER, lease);
  clock.advance(50_000);
  await first.close();
  const file = join(folder, 'leases.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const second = await inProcess({ folder, clock });
  clock.advance(9000);
  expect(await second.lease(OWNER, { ...lease, mode: 'renew', ttlMs: 1000 })).toEqual({
    held: true,
  });
  clock.advance(2000);
  expect(await failure(second.lease(OWNER, { ...lease, mode: 'renew' }))).toMatchObject({
    code: 'not_found',
  });
  await second.close();
  writeFileSync(file, '{"torn');
  const reports: string[] = [];
  const third = await inProcess({ folder, report: (message) => reports.push(message) });
  expect(reports).toEqual([expect.stringContaining('leases cannot be read')]);
  expect(await third.lease(OWNER, lease)).toEqual({ held: true });
});

it('[H82] a lease by name outlives a killed keeper and ends what is left; without its file, its processes have a last one', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'leases.json');
  const kept = (): unknown[] => JSON.parse(readFileSync(file, 'utf8')) as unknown[];
  const argv = ['sleep', '600'];
  const killed = async (host: Awaited<ReturnType<typeof overKeeper>>): Promise<void> => {
    process.kill((await host.health('*', {})).pid, 'SIGKILL');
    await host.ended;
  };
  const first = await overKeeper({ folder });
  const ids: string[] = [];
  for (const name of ['a', 'b']) {
    await first.holdLease(OWNER, { name, ttlMs: 600_000 });
    ids.push(await startProcess(first, { argv, lease: name }));
  }
  const [a = '', b = ''] = ids;
  await killed(first);
  const lease = { owner: OWNER, ttlMs: 600_000 };
  expect(kept()).toEqual([
    { ...lease, name: 'a' },
    { ...lease, name: 'b' },
  ]);
  const second = await overKeeper({ folder });
  expect(await second.get(OWNER, { id: a })).toMatchObject({ state: 'lost', settled: false });
  await second.holdLease(OWNER, { name: 'a', ttlMs: 0 });
  await waitFor(second, a, { kind: 'settled' });
  expect((await second.get(OWNER, { id: b })).settled).toBe(false);
  await killed(second);
  rmSync(file);
  const third = await overKeeper({ folder });
  expect(kept()).toEqual([{ owner: OWNER, name: 'b', ttlMs: 15_000 }]);
  await third.holdLease(OWNER, { name: 'b', ttlMs: 1 });
  await waitFor(third, b, { kind: 'settled' });
});

it('[CX910] what outlived its keeper is not called settled because something else ended, and is ended when asked', async () => {
  const folder = temporaryFolder();
  const first = await overKeeper({ folder });
  const id = await startProcess(first, { argv: ['sleep', '600'] });
  const { pid: survivor } = await first.get(OWNER, { id });
  const { pid } = await first.health('*', {});
  process.kill(pid, 'SIGKILL');
  await first.ended;
  const second = await overKeeper({ folder });
  // An end of its own kin, of which the new keeper is told.
  const other = await startProcess(second, { argv: ['sh', '-c', 'setsid sleep 0 & exit 0'] });
  await waitFor(second, other, { kind: 'settled' });
  expect(await second.get(OWNER, { id })).toMatchObject({ state: 'lost', settled: false });
  const ended = await second.signal(OWNER, { id, signal: 'terminate', by: 'test' });
  expect(ended).toMatchObject({ signalled: [survivor], survivors: [] });
  await waitFor(second, id, { kind: 'settled' });
  expect(isAlive(readEntry(survivor))).toBe(false);
});
