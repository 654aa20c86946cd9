// Making journals for tests, and reading them back whole.

import { BufferPool } from '../../src/base/bytes/buffer-pool.ts';
import { systemClock, type Clock } from '../../src/base/clock.ts';
import type { Disk } from '../../src/base/disk.ts';
import { EndedJournal } from '../../src/journal/read/ended-journal.ts';
import { Journal, type JournalLimits } from '../../src/journal/write/journal.ts';
import { DiskUsage } from '../../src/journal/write/disk-usage.ts';
import { readPage, type Readable } from '../../src/journal/read/reader.ts';
import { openJournal, type FoundJournal } from '../../src/journal/read/recovery.ts';
import { parseSegmentName, type Segment } from '../../src/journal/read/segment.ts';
import type { ProcessEvent } from '../../src/protocol/event.ts';
import type { Missed } from '../../src/protocol/host-api.ts';
import { decodeRecords } from '../../src/protocol/record.ts';
import { MemoryDisk } from './memory-disk.ts';

export const FOLDER = '/j';
const MiB = 1024 * 1024;

export interface Made {
  readonly journal: Journal;
  readonly disk: Disk;
  readonly usage: DiskUsage;
}

export function makeJournal(
  options: {
    disk?: Disk;
    clock?: Clock;
    folder?: string;
    limits?: Partial<JournalLimits>;
    poolBytes?: number;
  } = {},
): Made {
  const disk = options.disk ?? new MemoryDisk();
  const usage = new DiskUsage(Infinity, () => undefined);
  const limits = {
    journalBytes: 64 * MiB,
    journalHeadBytes: 16 * MiB,
    memoryBytes: MiB,
    ...options.limits,
  };
  const journal = new Journal({
    place: { disk, folder: options.folder ?? FOLDER, id: 'p1', usage },
    limits,
    clock: options.clock ?? systemClock,
    pool: new BufferPool(options.poolBytes ?? 256 * 1024, 4),
  });
  journal.open();
  journal.begin();
  return { journal, disk, usage };
}

export interface WholeRead {
  readonly events: ProcessEvent[];
  readonly missed: Missed[];
}

export async function readAll(journal: Readable, maxBytes = 64 * 1024): Promise<WholeRead> {
  const events: ProcessEvent[] = [];
  const missed: Missed[] = [];
  for (let after = 0; ;) {
    const page = await readPage(journal, { after, maxBytes });
    if (page.missed) missed.push(page.missed);
    events.push(...decodeRecords(page.records));
    if (page.nextAfter === after) return { events, missed };
    after = page.nextAfter;
  }
}

export function outputOf(events: readonly ProcessEvent[]): Buffer {
  return Buffer.concat(events.flatMap((event) => (event.kind === 'output' ? [event.data] : [])));
}

/** Opens what a memory disk holds as a new keeper would. */
export function reopen(disk: MemoryDisk): { found: FoundJournal; journal: EndedJournal } {
  const numbers = Array.from(
    disk.files.keys(),
    (path) => parseSegmentName(path.slice(FOLDER.length + 1))?.number ?? 0,
  );
  return opened(
    openJournal({ disk, folder: FOLDER, id: 'p1', numbers: numbers.sort((a, b) => a - b) }),
  );
}

function opened(found: FoundJournal): { found: FoundJournal; journal: EndedJournal } {
  const last: Segment | undefined = found.segments.at(-1);
  const end = { seq: last?.endSeq ?? 0, offset: last?.endOffset ?? 0, lostBytes: 0 };
  return { found, journal: new EndedJournal(found.segments, end) };
}

export function sameEvent(a: ProcessEvent, b: ProcessEvent): boolean {
  if (a.kind !== b.kind || a.offset !== b.offset || a.atUs !== b.atUs || a.wallMs !== b.wallMs)
    return false;
  if (a.kind === 'output')
    return b.kind === 'output' && a.stream === b.stream && a.data.equals(b.data);
  return b.kind !== 'output' && JSON.stringify(a.body) === JSON.stringify(b.body);
}
