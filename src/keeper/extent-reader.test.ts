import { describe, expect, it } from 'vitest';
import { makeJournal } from '../../test/support/journals.ts';
import { MemoryDisk } from '../../test/support/memory-disk.ts';
import type { ExtentPage } from '../host/process/read-events.ts';
import { extentPage } from '../journal/read/extent.ts';
import type { Journal } from '../journal/write/journal.ts';
import { readPage } from '../journal/read/reader.ts';
import type { Page } from '../protocol/host-api.ts';
import { decodeRecords } from '../protocol/record.ts';
import { ExtentReader } from './extent-reader.ts';

const KiB = 1024;
/** Where the second batch ends: the first has no mark of its own. */
const AT_MARK = 3;
const how = { seq: 0, state: 'running', end: false } as const;

async function flooded(limits = {}): Promise<{ journal: Journal; disk: MemoryDisk }> {
  const disk = new MemoryDisk();
  const { journal } = makeJournal({ disk, limits });
  journal.append({ kind: 'started', body: { pid: 1 } });
  await journal.visible();
  await flood(journal, 24);
  return { journal, disk };
}

async function flood(journal: Journal, batches: number): Promise<void> {
  for (let index = 0; index < batches; index += 1) {
    journal.output('stdout', Buffer.alloc(128 * KiB, index));
    await journal.visible();
  }
}

/** What a keeper would answer, and what it was asked. */
function keeperOf(journal: Journal): {
  asked: boolean[];
  ask: (after: number) => (near: boolean) => Promise<Page | ExtentPage>;
} {
  const asked: boolean[] = [];
  const ask = (after: number) => async (near: boolean) => {
    asked.push(near);
    const request = { after, maxBytes: 1024 * KiB };
    return { ...how, ...(await (near ? extentPage : readPage)(journal, request)) };
  };
  return { asked, ask };
}

function sameMemory(a: Page, b: Page): boolean {
  return a.records.buffer === b.records.buffer;
}

describe('reading near', () => {
  it('[FD5] a segment dropped between the answer and the read is reported as missed, not served', async () => {
    const { journal, disk } = await flooded({
      journalBytes: 4096 * KiB,
      journalHeadBytes: 256 * KiB,
    });
    const { asked, ask } = keeperOf(journal);
    const after = journal.segments()[2]?.firstSeq ?? 0;
    const page = await new ExtentReader(disk).readPage(async (near) => {
      const answer = await ask(after - 1)(near);
      // Between the answer and the look at the file.
      if (near) await flood(journal, 24);
      return answer;
    });
    expect(asked).toEqual([true, false]);
    expect(page.missed).toMatchObject({ fromSeq: after, reason: 'limit' });
    const [first] = decodeRecords(page.records);
    expect(first?.seq).toBe((page.missed?.toSeq ?? 0) + 1);
  });

  it('[FD6] files that are out of reach are not asked about for ever', async () => {
    const { journal } = await flooded();
    const { asked, ask } = keeperOf(journal);
    const elsewhere = new ExtentReader(new MemoryDisk());
    for (let round = 0; round < 5; round += 1) {
      const page = await elsewhere.readPage(ask(AT_MARK));
      expect([...decodeRecords(page.records)][0]?.seq).toBe(AT_MARK + 1);
    }
    expect(asked).toEqual([true, false, true, false, true, false, false, false]);
  });

  it('[FD7] memory that was given back serves the next page, and is given back once', async () => {
    const { journal, disk } = await flooded();
    const { ask } = keeperOf(journal);
    const reader = new ExtentReader(disk);
    const first = await reader.readPage(ask(AT_MARK));
    const second = await reader.readPage(ask(AT_MARK));
    expect(sameMemory(second, first)).toBe(false);
    first.release?.();
    first.release?.();
    const third = await reader.readPage(ask(AT_MARK));
    const fourth = await reader.readPage(ask(AT_MARK));
    expect(sameMemory(third, first)).toBe(true);
    expect(sameMemory(fourth, third)).toBe(false);
    expect(fourth.records.equals(second.records)).toBe(true);
  });
});
