import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { makeJournal, outputOf, readAll, reopen } from '../../../test/support/journals.ts';
import { MemoryDisk } from '../../../test/support/memory-disk.ts';
import type { Journal } from './journal.ts';

const KiB = 1024;

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Everything under way has come to rest. */
async function settle(journal: Journal): Promise<void> {
  await journal.visible();
  await turn();
}

describe('a disk that refuses', () => {
  for (const errno of ['ENOSPC', 'EROFS', 'EIO', 'EFBIG', 'EDQUOT']) {
    it(`[J13] ${errno}: output continues in memory, is readable, and is stored when the disk works again`, async () => {
      const disk = new MemoryDisk();
      const clock = new FakeClock();
      const { journal } = makeJournal({ disk, clock });
      journal.append({ kind: 'started', body: { pid: 1 } });
      await settle(journal);
      disk.failure = errno;
      journal.output('merged', Buffer.from('while it refuses\n'));
      await settle(journal);
      expect(journal.degraded).toBe(errno);
      expect(outputOf((await readAll(journal)).events).toString()).toBe('while it refuses\n');
      disk.failure = undefined;
      clock.advance(1000);
      await settle(journal);
      expect(journal.degraded).toBeUndefined();
      journal.output('merged', Buffer.from('and after\n'));
      await settle(journal);
      const { events, missed } = await readAll(reopen(disk).journal);
      expect(missed).toEqual([]);
      expect(events.map((event) => event.seq)).toEqual([1, 2, 3]);
      expect(outputOf(events).toString()).toBe('while it refuses\nand after\n');
    });
  }

  it('[J14] notices a short write: what was acknowledged is there, the half record is gone', async () => {
    const disk = new MemoryDisk();
    const clock = new FakeClock();
    const { journal } = makeJournal({ disk, clock });
    journal.append({ kind: 'started', body: { pid: 1 } });
    await settle(journal);
    for (const size of [10, 100_000]) {
      disk.freeBytes = Math.floor(size / 2);
      journal.output('merged', Buffer.alloc(size, 'x'));
      await settle(journal);
      expect(journal.degraded).toBe('ENOSPC');
      const onDisk = await readAll(reopen(disk).journal);
      expect(onDisk.events.at(-1)?.seq).toBeLessThan(journal.seq);
      disk.freeBytes = Infinity;
      clock.advance(1000);
      await settle(journal);
      await turn();
      expect(journal.degraded).toBeUndefined();
    }
    const { events, missed } = await readAll(reopen(disk).journal);
    expect(missed).toEqual([]);
    expect(outputOf(events).length).toBe(100_010);
  });

  it('[J15] beyond the memory bound the oldest unstored output becomes one gap with exact counts', async () => {
    const disk = new MemoryDisk();
    const clock = new FakeClock();
    const { journal } = makeJournal({
      disk,
      clock,
      poolBytes: 64 * KiB,
      limits: { memoryBytes: 256 * KiB },
    });
    journal.output('merged', Buffer.from('stored\n'));
    await settle(journal);
    disk.failure = 'ENOSPC';
    const refused = Buffer.alloc(1000 * KiB);
    for (let at = 0; at < refused.length; at += 4) refused.writeUInt32LE(at, at);
    for (let at = 0; at < refused.length; at += 10_000) {
      journal.output('merged', refused.subarray(at, at + 10_000));
      await settle(journal);
    }
    expect(journal.full).toBe(false);
    const during = await readAll(journal);
    expect(during.missed).toMatchObject([{ reason: 'storage', bytes: journal.lostBytes }]);
    expect(journal.lostBytes).toBeGreaterThan(700 * KiB);
    disk.failure = undefined;
    clock.advance(1000);
    await settle(journal);
    journal.output('merged', Buffer.from('after\n'));
    journal.appendClosed({});
    await settle(journal);
    const { found, journal: again } = reopen(disk);
    expect(found).toMatchObject({ kind: 'finished', closed: { lostBytes: journal.lostBytes } });
    const { events, missed } = await readAll(again);
    expect(missed).toEqual([]);
    const gap = events.find((event) => event.kind === 'gap');
    expect(gap).toMatchObject({ body: { fromSeq: 2, bytes: journal.lostBytes } });
    const out = outputOf(events);
    const tail = refused.subarray(journal.lostBytes);
    expect(out.equals(Buffer.concat([Buffer.from('stored\n'), tail, Buffer.from('after\n')]))).toBe(
      true,
    );
    expect(journal.offset).toBe(7 + refused.length + 6);
  });

  it('[J16] a disk that fails again while recovering loses nothing more than it says', async () => {
    const disk = new MemoryDisk();
    const clock = new FakeClock();
    const { journal } = makeJournal({
      disk,
      clock,
      poolBytes: 64 * KiB,
      limits: { memoryBytes: 128 * KiB },
    });
    disk.failure = 'EIO';
    for (let round = 0; round < 6; round += 1) {
      for (let index = 0; index < 20; index += 1) {
        journal.output('merged', Buffer.alloc(10_000, 65 + round));
        await settle(journal);
      }
      disk.failure = undefined;
      disk.freeBytes = 20_000 * round;
      clock.advance(1000);
      await settle(journal);
      await turn();
    }
    disk.freeBytes = Infinity;
    clock.advance(1000);
    await settle(journal);
    await turn();
    const { events, missed } = await readAll(reopen(disk).journal);
    const gaps = events.reduce(
      (total, event) => total + (event.kind === 'gap' ? event.body.bytes : 0),
      0,
    );
    expect(missed).toEqual([]);
    expect(gaps).toBe(journal.lostBytes);
    expect(outputOf(events).length + gaps).toBe(journal.offset);
    expect(events.at(-1)?.seq).toBe(journal.seq);
  });

  it('[J17] it reports when its queue is full, and when that has drained', async () => {
    const disk = new MemoryDisk();
    const { journal, usage } = makeJournal({ disk, limits: { memoryBytes: 256 * KiB } });
    usage.slow = true;
    journal.output('merged', Buffer.alloc(300 * KiB));
    expect(journal.full).toBe(true);
    let drained = false;
    journal.whenDrained(() => (drained = true));
    await settle(journal);
    expect([journal.full, drained]).toEqual([false, true]);
  });
});

it('[J22] a slow disk is written by a thread until it is fast again', async () => {
  const clock = new FakeClock();
  const ways: string[] = [];
  let takesMs = 0;
  class TimedDisk extends MemoryDisk {
    override writeSync(fd: number, parts: readonly Buffer[], position: number): number {
      ways.push('here');
      clock.advance(takesMs);
      return super.writeSync(fd, parts, position);
    }
    override async write(fd: number, parts: readonly Buffer[], position: number): Promise<number> {
      await turn();
      clock.advance(takesMs);
      ways.push('thread');
      return MemoryDisk.prototype.writeSync.call(this, fd, parts, position);
    }
  }
  const { journal } = makeJournal({ disk: new TimedDisk(), clock });
  for (takesMs of [0, 0, 50, 50, 0, 0]) {
    journal.output('merged', Buffer.alloc(200_000, 'x'));
    await settle(journal);
  }
  expect(ways).toEqual(['here', 'here', 'here', 'thread', 'thread', 'here']);
  expect(outputOf((await readAll(journal)).events).length).toBe(1_200_000);
});

it('[H50] a wait for a removed journal rejects with not_found', async () => {
  class StuckDisk extends MemoryDisk {
    override write(): Promise<number> {
      return new Promise(() => undefined);
    }
  }
  const { journal, usage } = makeJournal({ disk: new StuckDisk() });
  usage.slow = true;
  journal.output('merged', Buffer.from('on its way'));
  const visible = journal.visible();
  journal.remove();
  await expect(visible).rejects.toMatchObject({ code: 'not_found' });
  journal.output('merged', Buffer.from('too late'));
  await expect(journal.visible()).rejects.toMatchObject({ code: 'not_found' });
});
