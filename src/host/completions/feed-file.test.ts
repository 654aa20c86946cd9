import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { BufferPool } from '../../base/bytes/buffer-pool.ts';
import { systemClock, type Clock } from '../../base/clock.ts';
import { systemDisk, type Disk } from '../../base/disk.ts';
import { DiskUsage } from '../../journal/write/disk-usage.ts';
import { defaultLimits } from '../../protocol/limits.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { FeedFile } from './feed-file.ts';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** The real disk; it counts open files, and refuses on request. */
class CountedDisk {
  refuses = false;
  open = 0;
  readonly disk: Disk = {
    ...systemDisk,
    create: (path) => {
      if (this.refuses) throw Object.assign(new Error('ENOSPC: made to fail'), { code: 'ENOSPC' });
      this.open += 1;
      return systemDisk.create(path);
    },
    createAsync: () => Promise.reject(new Error('not made ahead')),
    openRead: (path) => {
      this.open += 1;
      return systemDisk.openRead(path);
    },
    close: (fd) => {
      this.open -= 1;
      systemDisk.close(fd);
    },
  };
}

async function openFeed(disk: Disk, folder: string, clock: Clock = systemClock): Promise<FeedFile> {
  const usage = new DiskUsage(Infinity, () => undefined);
  const pool = new BufferPool(256 * 1024, 4);
  const place = { disk, folder, usage };
  const feed = new FeedFile({ place, limits: defaultLimits, clock, pool });
  await feed.open();
  cleanups.push(() => feed.close());
  return feed;
}

function add(feed: FeedFile, count: number, lastLines = ''): void {
  const { completions } = feed;
  for (let n = 0; n < count; n += 1) {
    const number = completions.next;
    completions.add(`serial-${number}`, {
      number,
      id: `p${number}`,
      owner: 'me',
      command: 'x'.repeat(100_000),
      outcome: { kind: 'exit', code: 0 },
      durationMs: 1,
      bytes: 0,
      lastLines,
      atMs: 1,
    });
  }
}

it('[H34] a feed that the disk does not take anew goes on in its old file, and leaves none open', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-feed-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const counted = new CountedDisk();
  const feed = await openFeed(counted.disk, folder);
  add(feed, 90);
  feed.completions.acknowledge('me', 'default', [1, 2, 3]);
  const before = counted.open;
  counted.refuses = true;
  feed.compact();
  feed.compact();
  counted.refuses = false;
  add(feed, 2);
  await feed.close();
  expect(counted.open).toBe(before - 1);
  const again = await openFeed(counted.disk, folder);
  const question = { owner: 'me', subscriber: 'default', after: 0, limit: 1000 };
  const reported: number[] = [];
  for (let after = 0; ;) {
    const page = again.completions.pending({ ...question, after });
    if (page.length === 0) break;
    reported.push(...page.map(({ number }) => number));
    after = reported.at(-1) ?? 0;
  }
  expect(reported).toEqual(Array.from({ length: 89 }, (_, n) => n + 4));
});

/** The last lines of all completions, and the files that have these words. */
function found(feed: FeedFile, folder: string, words: string): unknown[] {
  const question = { owner: 'me', subscriber: 'default', after: 0, limit: 1000 };
  return [
    feed.completions.pending(question).map(({ lastLines }) => lastLines),
    readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(words)).length,
  ];
}

it('[H110] of a deleted process the feed keeps how it ended, and nothing that it printed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-feed-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const clock = new FakeClock();
  const counted = new CountedDisk();
  const feed = await openFeed(counted.disk, folder, clock);
  add(feed, 1, 'SECRET');
  add(feed, 1, 'kept');
  feed.processForgotten('serial-1', true);
  // Beyond the limits only: a subscriber may not have read it yet.
  feed.processForgotten('serial-2', false);
  await feed.completions.stored();
  expect(found(feed, folder, 'SECRET')).toEqual([['', 'kept'], 1]);
  counted.refuses = true;
  clock.advance(10_000);
  counted.refuses = false;
  clock.advance(10_000);
  await feed.completions.stored();
  expect(found(feed, folder, 'SECRET')).toEqual([['', 'kept'], 0]);
});

it('[H110] the next keeper erases what a killed one had not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-feed-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const killed = await openFeed(systemDisk, folder, new FakeClock());
  add(killed, 1, 'SECRET');
  killed.processForgotten('serial-1', true);
  await killed.completions.stored();
  const next = await openFeed(systemDisk, folder);
  expect(found(next, folder, 'SECRET')).toEqual([[''], 0]);
});
