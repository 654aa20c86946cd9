import * as fc from '../../../test/support/properties.ts';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { makeJournal, outputOf, readAll, sameEvent } from '../../../test/support/journals.ts';
import { MemoryDisk } from '../../../test/support/memory-disk.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { EndedJournal } from './ended-journal.ts';
import { extentPage, readExtent, type Extent } from './extent.ts';
import { Journal } from '../write/journal.ts';
import type { Readable } from './reader.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
/** The first batch is too close to the beginning to have an index point. */
const AT_MARK = 3;

/** Reads to the end as a client on this machine does, and counts the pages that came as extents. */
async function readNear(
  journal: Readable,
  disk: MemoryDisk,
  maxBytes: number,
): Promise<{ events: ProcessEvent[]; extents: number }> {
  const events: ProcessEvent[] = [];
  let extents = 0;
  for (let after = 0; ;) {
    const page = await extentPage(journal, { after, maxBytes });
    const records = 'extent' in page ? await fetch(disk, page.extent) : page.records;
    if (!records) throw new Error('a fresh extent cannot be read');
    if ('extent' in page) extents += 1;
    events.push(...decodeRecords(records));
    if (page.nextAfter === after) return { events, extents };
    after = page.nextAfter;
  }
}

function fetch(disk: MemoryDisk, extent: Extent): Promise<Buffer | undefined> {
  return readExtent(disk, extent, Buffer.alloc(extent.bytes));
}

/** A journal with `batches` batches of 128 KiB, in which each byte shows its position. */
async function filled(
  batches: number,
  limits = {},
): Promise<{ journal: Journal; disk: MemoryDisk; bytes: Buffer }> {
  const disk = new MemoryDisk();
  const { journal } = makeJournal({ disk, limits });
  journal.append({ kind: 'started', body: { pid: 1 } });
  await journal.visible();
  const bytes = Buffer.alloc(batches * 128 * KiB);
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at, at);
  for (let at = 0; at < bytes.length; at += 128 * KiB) {
    journal.output('stdout', bytes.subarray(at, at + 128 * KiB));
    await journal.visible();
  }
  return { journal, disk, bytes };
}

async function firstExtent(journal: Journal): Promise<Extent> {
  const page = await extentPage(journal, { after: AT_MARK, maxBytes: MiB });
  if (!('extent' in page)) throw new Error('the page came without an extent');
  return page.extent;
}

describe('an extent', () => {
  it('[FD1] a reader of extents gets every event once, as a reader of pages does', async () => {
    const property = fc.asyncProperty(
      fc.array(
        fc.record({
          size: fc.integer({ min: 1, max: 200 * KiB }),
          note: fc.boolean(),
          settle: fc.boolean(),
        }),
        { minLength: 1, maxLength: 30 },
      ),
      fc.constantFrom(70 * KiB, 256 * KiB, MiB),
      fc.boolean(),
      async (writes, maxBytes, ended) => {
        const disk = new MemoryDisk();
        const { journal } = makeJournal({ disk });
        journal.append({ kind: 'started', body: { pid: 1 } });
        for (const [index, { size, note, settle }] of writes.entries()) {
          journal.output(note ? 'stderr' : 'stdout', Buffer.alloc(size, index));
          if (note) journal.append({ kind: 'note', body: { index } });
          if (settle) await journal.visible();
        }
        journal.append({ kind: 'exited', body: { outcome: { kind: 'exit', code: 0 } } });
        if (ended) journal.appendClosed({});
        await journal.visible();
        const { seq, offset } = journal;
        const end = { seq, offset, lostBytes: 0 };
        const read = ended ? new EndedJournal(journal.segments(), end) : journal;
        const given = await readAll(journal);
        const near = await readNear(read, disk, maxBytes);
        expect(near.events.length).toBe(given.events.length);
        expect(
          near.events.every((event, index) =>
            sameEvent(event, given.events[index] as ProcessEvent),
          ),
        ).toBe(true);
        // The writer's own.
        expect(disk.openFiles).toBe(1);
      },
    );
    await fc.assert(property, { numRuns: 60 });
  });

  it('[FD2] large output comes in large extents, and few bytes are sent', async () => {
    const { journal, disk, bytes } = await filled(64);
    const { events, extents } = await readNear(journal, disk, MiB);
    expect(outputOf(events).equals(bytes)).toBe(true);
    // 8 MiB in pages of at most 1 MiB, over three segments.
    expect(extents).toBeGreaterThanOrEqual(8);
    expect(extents).toBeLessThanOrEqual(12);
  });

  it('[FD2] a reader inside a batch is sent the rest of it, and then gets extents', async () => {
    const { journal } = await filled(8);
    const middle = await extentPage(journal, { after: 2, maxBytes: MiB });
    expect(middle).toMatchObject({ nextAfter: 3 });
    expect('records' in middle).toBe(true);
    expect('extent' in (await extentPage(journal, { after: 3, maxBytes: MiB }))).toBe(true);
  });

  it('[FD3] a flipped bit, a truncated file, another file and a missing one are detected', async () => {
    const { journal, disk } = await filled(3);
    const extent = await firstExtent(journal);
    const file = disk.files.get(extent.path);
    if (!file) throw new Error('the extent names no file');
    const whole = file.bytes;
    expect((await fetch(disk, extent))?.length).toBe(extent.bytes);
    for (let at = 0; at < extent.bytes; at += at < 300 ? 1 : 4999) {
      const damaged = Buffer.from(whole);
      const position = extent.position + at;
      damaged[position] = (damaged[position] ?? 0) ^ (1 << (at % 8));
      file.bytes = damaged;
      expect(await fetch(disk, extent)).toBeUndefined();
    }
    for (const length of [0, extent.position, extent.position + 33, whole.length - 1]) {
      file.bytes = whole.subarray(0, length);
      expect(await fetch(disk, extent)).toBeUndefined();
    }
    file.bytes = whole;
    // Good records, but others: the file was replaced by one that looks the same.
    expect(await fetch(disk, { ...extent, firstSeq: 5, lastSeq: 6 })).toBeUndefined();
    disk.remove(extent.path);
    expect(await fetch(disk, extent)).toBeUndefined();
    expect(disk.openFiles).toBe(1);
  });

  it('[FD4] while the disk refuses, pages are sent; a gap record is part of an extent like any record', async () => {
    const disk = new MemoryDisk();
    const clock = new FakeClock();
    const { journal } = makeJournal({ disk, clock, limits: { memoryBytes: 256 * KiB } });
    journal.append({ kind: 'started', body: { pid: 1 } });
    await journal.visible();
    disk.failure = 'ENOSPC';
    for (let index = 0; index < 8; index += 1) {
      journal.output('stdout', Buffer.alloc(128 * KiB, index));
      await journal.visible();
    }
    const after = journal.visibleSeq - 2;
    expect('records' in (await extentPage(journal, { after, maxBytes: MiB }))).toBe(true);
    disk.failure = undefined;
    clock.advance(1000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(journal.degraded).toBeUndefined();
    journal.output('stdout', Buffer.alloc(128 * KiB, 9));
    await journal.visible();
    const { events, extents } = await readNear(journal, disk, MiB);
    expect(extents).toBeGreaterThan(0);
    const gaps = events.filter(({ kind }) => kind === 'gap');
    expect(gaps).toHaveLength(1);
    const lost = gaps.reduce(
      (total, event) => total + (event.kind === 'gap' ? event.body.bytes : 0),
      0,
    );
    expect(outputOf(events).length + lost).toBe(9 * 128 * KiB);
    expect(lost).toBe(journal.lostBytes);
  });
});
