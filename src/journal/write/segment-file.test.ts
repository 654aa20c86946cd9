import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { makeJournal, readAll, reopen } from '../../../test/support/journals.ts';
import { MemoryDisk } from '../../../test/support/memory-disk.ts';
import { seeded } from '../../../test/support/random.ts';
import type { Journal } from './journal.ts';
import { END_MARK } from './segment-file.ts';

const started = { kind: 'started', body: { pid: 1 } } as const;
const exited = { kind: 'exited', body: { outcome: { kind: 'exit', code: 0 } } } as const;
const SEGMENT = 64 * 1024;
const limits = { journalBytes: 16 * SEGMENT, journalHeadBytes: 4 * SEGMENT };

/** Output whose every byte tells where it stands. */
function output(offset: number, bytes: number): Buffer {
  const made = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += 1) made[at] = ((offset + at) * 2_654_435_761) >>> 21;
  return made;
}

/** Prints until the journal has dropped `times` of what it may keep, in pieces of any size. */
async function flood(
  journal: Journal,
  times: number,
  { pieceBytes, each }: { pieceBytes?: number | undefined; each?: () => void } = {},
): Promise<void> {
  const random = seeded(7);
  journal.append(started);
  while (journal.offset < times * limits.journalBytes) {
    const bytes = pieceBytes ?? 1 + Math.floor(random() ** 4 * 20_000);
    journal.output('merged', output(journal.offset, bytes));
    if (pieceBytes !== undefined || random() < 0.7) await journal.visible();
    each?.();
  }
  await journal.visible();
}

async function expectTrue(journal: Parameters<typeof readAll>[0]): Promise<void> {
  const { events, missed } = await readAll(journal, 1024 * 1024);
  let bytes = 0;
  for (const event of events) {
    if (event.kind !== 'output') continue;
    bytes += event.data.length;
    expect(event.data.equals(output(event.offset, event.data.length))).toBe(true);
  }
  expect(missed.every(({ reason }) => reason === 'limit')).toBe(true);
  expect(bytes + missed.reduce((total, gap) => total + gap.bytes, 0)).toBe(journal.visibleOffset);
}

function copyOf(disk: MemoryDisk): MemoryDisk {
  const copy = new MemoryDisk();
  for (const [path, { bytes }] of disk.files) copy.files.set(path, { bytes: Buffer.from(bytes) });
  return copy;
}

it('[J20] a flood overwrites the files of what it drops: no more of them, never beyond the size, all of it true', async () => {
  const disk = new MemoryDisk();
  const { journal, usage } = makeJournal({ disk, limits });
  const files = new Set<object>();
  let most = 0;
  const each = (): void => {
    for (const file of disk.files.values()) files.add(file);
    most = Math.max(most, disk.bytes);
  };
  await flood(journal, 4, { each });
  expect(journal.offset).toBeGreaterThan(60 * SEGMENT);
  expect(files.size).toBeLessThan(32);
  expect(most).toBeLessThanOrEqual(limits.journalBytes + SEGMENT);
  await expectTrue(journal);
  journal.append(exited);
  journal.appendClosed({});
  await journal.visible();
  journal.release();
  expect(usage.bytes).toBe(disk.bytes);
  expect(disk.openFiles).toBe(0);
  const again = reopen(disk);
  expect(again.found).toMatchObject({ kind: 'finished', seq: journal.seq });
  await expectTrue(again.journal);
});

/** Hands out what is on the disk in the middle of every write, right before its end mark, and behind it. */
class KilledDisk extends MemoryDisk {
  /** As a keeper killed there would leave it. `whole`: no write was under way. */
  left: ((disk: MemoryDisk, whole: boolean) => void) | undefined;

  override writeSync(fd: number, parts: readonly Buffer[], position: number): number {
    const bytes = Buffer.concat(parts);
    for (const upTo of this.left ? [bytes.length >> 1, bytes.length - END_MARK.length] : []) {
      super.writeSync(fd, [bytes.subarray(0, upTo)], position);
      this.left?.(copyOf(this), false);
    }
    const taken = super.writeSync(fd, parts, position);
    this.left?.(copyOf(this), true);
    return taken;
  }
}

// Pieces of one size: each record begins where one stood before.
it.each([
  { pieces: 'of any size', sizes: [40_000, 900, 900], pieceBytes: undefined },
  { pieces: 'of one size', sizes: [3000], pieceBytes: 3000 },
])(
  '[J20] a keeper killed in or after any write of pieces $pieces into such a file leaves all that was visible, and nothing else',
  async ({ sizes, pieceBytes }) => {
    const disk = new KilledDisk();
    const { journal } = makeJournal({ disk, limits });
    await flood(journal, 2, { pieceBytes });
    const found: { disk: MemoryDisk; whole: boolean; visible: number }[] = [];
    disk.left = (left, whole) => found.push({ disk: left, whole, visible: journal.visibleOffset });
    for (let piece = 0; piece < 60; piece += 1) {
      journal.output('merged', output(journal.offset, sizes[piece % sizes.length] ?? 0));
      await journal.visible();
    }
    disk.left = undefined;
    expect(found.length).toBe(180);
    for (const { disk: left, whole, visible } of found) {
      const { found: again, journal: ended } = reopen(left);
      expect(again).toMatchObject({ kind: 'unfinished' });
      if (again.kind !== 'unfinished') continue;
      expect(again.offset).toBeGreaterThanOrEqual(visible);
      if (whole) expect(again.tornBytes).toBe(0);
      await expectTrue(ended);
    }
  },
);

it('[J20] a file that was made ready and not begun is nothing of the journal', async () => {
  const disk = new MemoryDisk();
  const { journal } = makeJournal({ disk, limits });
  await flood(journal, 2);
  const names = () => [...disk.files.keys()].sort();
  const newest = () => journal.segments().at(-1)?.path ?? '';
  while (names().at(-1) === newest()) {
    journal.output('merged', output(journal.offset, 5000));
    await journal.visible();
  }
  const ahead = names().at(-1) ?? '';
  expect(disk.files.get(ahead)?.bytes.length).toBeGreaterThan(SEGMENT / 2);
  const left = copyOf(disk);
  const { found, journal: ended } = reopen(left);
  expect(found).toMatchObject({ kind: 'unfinished', offset: journal.offset, tornBytes: 0 });
  expect(left.files.has(ahead)).toBe(false);
  await expectTrue(ended);
});

it('[J20] a file that is being read is not overwritten', async () => {
  class HeldDisk extends MemoryDisk {
    held: Promise<void> | undefined;
    override async read(fd: number, into: Buffer, position: number): Promise<number> {
      await this.held;
      return super.read(fd, into, position);
    }
  }
  const disk = new HeldDisk();
  const { journal } = makeJournal({ disk, limits });
  await flood(journal, 1.5);
  let go = (): void => undefined;
  disk.held = new Promise((resolve) => (go = resolve));
  const oldest = journal.segments()[4];
  const whole = Buffer.from(disk.files.get(oldest?.path ?? '')?.bytes ?? Buffer.alloc(0));
  const reading = oldest?.read(0, oldest.size);
  while (journal.segments().includes(oldest as never)) {
    journal.output('merged', output(journal.offset, 9000));
    await journal.visible();
  }
  for (let piece = 0; piece < 20; piece += 1) {
    journal.output('merged', output(journal.offset, 9000));
    await journal.visible();
  }
  go();
  expect((await reading)?.equals(whole)).toBe(true);
});

it('[J20] a disk that refuses in the middle of such a file loses nothing that fits into memory', async () => {
  const disk = new MemoryDisk();
  const clock = new FakeClock();
  const { journal, usage } = makeJournal({ disk, clock, limits });
  await flood(journal, 2);
  for (let turn = 0; turn < 12; turn += 1) {
    disk.failure = 'EIO';
    journal.output('merged', output(journal.offset, 13_000));
    await journal.visible();
    expect(journal.degraded).toBe('EIO');
    disk.failure = undefined;
    clock.advance(250);
    while (journal.degraded !== undefined) await Promise.resolve();
    journal.output('merged', output(journal.offset, 30_000));
    await journal.visible();
  }
  expect(journal.lostBytes).toBe(0);
  await expectTrue(journal);
  journal.release();
  expect(usage.bytes).toBe(disk.bytes);
});

it('[J21] a file that could not be synced is closed when the write into it is over, and written no more', async () => {
  class UnsyncedDisk extends MemoryDisk {
    held: Promise<void> | undefined;
    override async write(fd: number, parts: readonly Buffer[], at: number): Promise<number> {
      await this.held;
      return super.write(fd, parts, at);
    }
    override sync(): Promise<void> {
      return Promise.reject(new Error('EIO'));
    }
  }
  const disk = new UnsyncedDisk();
  const { journal, usage } = makeJournal({ disk, limits });
  await flood(journal, 2);
  let go = (): void => undefined;
  disk.held = new Promise((resolve) => (go = resolve));
  usage.slow = true;
  journal.output('merged', output(journal.offset, 40_000));
  const visible = journal.visible();
  await expect(journal.sync()).rejects.toThrow('EIO');
  expect(disk.openFiles).toBeGreaterThan(0);
  go();
  await visible;
  const segments = journal.segments().length;
  journal.output('merged', output(journal.offset, 40_000));
  await journal.visible();
  expect(journal.segments().length).toBeGreaterThan(segments);
  expect(journal.degraded).toBeUndefined();
  await expectTrue(journal);
  journal.release();
  await new Promise(setImmediate);
  expect(disk.openFiles).toBe(0);
  journal.remove();
  expect(usage.bytes).toBe(0);
  expect(disk.files.size).toBe(0);
});
