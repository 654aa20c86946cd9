import { linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from 'vitest';

import { outputOf, readAll } from '../../../test/support/journals.ts';
import { turnsUntil } from '../../../test/support/recorder.ts';
import { BufferPool } from '../../base/bytes/buffer-pool.ts';
import { systemClock } from '../../base/clock.ts';
import { systemDisk } from '../../base/disk.ts';
import { defaultLimits } from '../../protocol/limits.ts';
import { EndedJournal } from '../../journal/read/ended-journal.ts';
import { DiskUsage } from '../../journal/write/disk-usage.ts';
import { openJournal } from '../../journal/read/recovery.ts';
import { segmentName } from '../../journal/read/segment.ts';
import { SpareJournals, type Spare } from './spare-journals.ts';

let folder: string;
let usage: DiskUsage;
let spares: SpareJournals;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-spares-'));
  usage = new DiskUsage(Infinity, () => undefined);
  const pool = new BufferPool(65_536, 4);
  spares = new SpareJournals({
    folder,
    usage,
    pool,
    disk: systemDisk,
    clock: systemClock,
    limits: defaultLimits,
  });
});
afterEach(async () => {
  await spares.close();
  rmSync(folder, { recursive: true });
});

const pathOf = ({ serial }: Spare) => join(folder, segmentName(serial, 1));
const inodeOf = (spare: Spare) => statSync(pathOf(spare)).ino;

/** A whole life, until only its file is left. */
async function live(text: string): Promise<{ spare: Spare; ended: EndedJournal }> {
  const spare = spares.take();
  const { journal } = spare;
  journal.begin();
  journal.append({ kind: 'started', body: { pid: 1 } });
  journal.output('merged', Buffer.from(text));
  journal.append({ kind: 'exited', body: { outcome: { kind: 'exit', code: 0 } } });
  journal.appendClosed({});
  await journal.visible();
  const { visibleSeq: seq, visibleOffset: offset, lostBytes } = journal;
  journal.release();
  return { spare, ended: new EndedJournal(journal.segments(), { seq, offset, lostBytes }) };
}

const crowdInodes = () => readdirSync(folder).map((name) => statSync(join(folder, name)).ino);

const found = ({ serial: id }: Spare) =>
  openJournal({ disk: systemDisk, folder, id, numbers: [1] });

test('[J18] the file of a forgotten process serves the next one, which finds nothing of the first in it', async () => {
  let last = await live('the first');
  const [inode, bytes] = [inodeOf(last.spare), usage.bytes];
  for (let generation = 0; generation < 5; generation += 1) {
    const before = last;
    spares.discard(before.ended);
    expect(readdirSync(folder)).not.toContain(segmentName(before.spare.serial, 1));
    last = await live(`generation ${generation}`);
    expect(inodeOf(last.spare)).toBe(inode);
    expect(outputOf((await readAll(last.ended)).events).toString()).toBe(
      `generation ${generation}`,
    );
    expect(readFileSync(pathOf(last.spare)).includes('the first')).toBe(false);
    expect(found(last.spare)).toMatchObject({ kind: 'finished', seq: 4 });
  }
  // An opening record more than the first, however often.
  expect(usage.bytes).toBe(readFileSync(pathOf(last.spare)).length);
  expect(usage.bytes - bytes).toBeLessThan(150);
});

test('[J18] the file of a process that an earlier keeper held serves the next one too', async () => {
  spares.discard((await live('first')).ended);
  const { spare } = await live('of an earlier keeper');
  const inode = inodeOf(spare);
  const { segments } = found(spare);
  const offset = 'of an earlier keeper'.length;
  usage.bytes = segments[0]?.size ?? 0;
  spares.discard(new EndedJournal(segments, { seq: 4, offset, lostBytes: 0 }));
  const next = await live('next');
  expect(inodeOf(next.spare)).toBe(inode);
  expect(outputOf((await readAll(next.ended)).events).toString()).toBe('next');
  expect(readFileSync(pathOf(next.spare)).includes('earlier')).toBe(false);
  expect(found(next.spare)).toMatchObject({ kind: 'finished', seq: 4 });
  expect(usage.bytes).toBe(readFileSync(pathOf(next.spare)).length);
});

test('[J18] a keeper that is killed before the file is used, or in the middle of a life, leaves what it should', async () => {
  const { ended } = await live('gone');
  spares.discard(ended);
  const spare = spares.take();
  expect(found(spare)).toMatchObject({ kind: 'empty' });
  spare.journal.begin();
  spare.journal.append({ kind: 'started', body: { pid: 2 } });
  spare.journal.output('merged', Buffer.from('half'));
  await spare.journal.visible();
  expect(found(spare)).toMatchObject({ kind: 'unfinished', seq: 2, offset: 4, tornBytes: 0 });
  spare.journal.remove();
});

test('[J18] a file that is being read, has another name, or is large, is removed instead', async () => {
  const read = await live('read at this moment');
  const reading = readAll(read.ended);
  spares.discard(read.ended);
  expect(readdirSync(folder)).toEqual([]);
  expect(outputOf((await reading).events).toString()).toBe('read at this moment');

  const linked = await live('kept elsewhere');
  const copy = join(folder, 'copy');
  linkSync(pathOf(linked.spare), copy);
  const before = readFileSync(copy);
  spares.discard(linked.ended);
  expect(readdirSync(folder)).toEqual(['copy']);
  expect(readFileSync(copy).equals(before)).toBe(true);

  const large = await live('x'.repeat(100_000));
  spares.discard(large.ended);
  expect(readdirSync(folder)).toEqual(['copy']);
  expect(usage.bytes).toBe(0);
});

test('[J18] there are never more of them than are wanted', async () => {
  const lives = [await live('one'), await live('two'), await live('three'), await live('four')];
  // One is wanted, and twice as many after each start that found none.
  for (const { ended } of [...lives, await live('five'), await live('six')]) spares.discard(ended);
  expect(readdirSync(folder).length).toBeLessThanOrEqual(16);
  const crowd = await Promise.all(Array.from({ length: 300 }, () => live('one of a crowd')));
  for (const { ended } of crowd) spares.discard(ended);
  await turnsUntil(() => readdirSync(folder).length <= 256);
  // The next crowd makes no file.
  const inodes = new Set(crowdInodes());
  const next = await Promise.all(Array.from({ length: 256 }, () => live('one of the next')));
  for (const { spare } of next) expect(inodes.has(inodeOf(spare))).toBe(true);
  for (const { ended } of next) spares.discard(ended);
  await spares.close();
  await turnsUntil(() => readdirSync(folder).length === 0);
  expect(usage.bytes).toBe(0);
});
