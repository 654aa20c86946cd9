import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { makeJournal, outputOf, readAll, reopen } from '../../../test/support/journals.ts';
import { MemoryDisk } from '../../../test/support/memory-disk.ts';
import { seeded } from '../../../test/support/random.ts';
import { decodeRecords } from '../../protocol/record.ts';
import { readPage, readRange } from '../read/reader.ts';

const started = { kind: 'started', body: { pid: 1 } } as const;
const exited = { kind: 'exited', body: { outcome: { kind: 'exit', code: 0 } } } as const;

describe('journal', () => {
  it('[J1] numbers events from 1 without a hole and keeps their order, bytes and times', async () => {
    const clock = new FakeClock();
    const { journal } = makeJournal({ clock });
    journal.append(started);
    clock.advance(5);
    journal.output('stdout', Buffer.from('one'));
    journal.output('stderr', Buffer.from('two'));
    journal.append(exited);
    clock.wallOffsetMs -= 3_600_000;
    journal.output('stderr', Buffer.from([0xff, 0x00]));
    journal.appendClosed({});
    await journal.visible();
    const { events, missed } = await readAll(journal);
    expect(missed).toEqual([]);
    expect(events.map((event) => [event.seq, event.kind, event.offset])).toEqual([
      [1, 'started', 0],
      [2, 'output', 0],
      [3, 'output', 3],
      [4, 'exited', 6],
      [5, 'output', 6],
      [6, 'closed', 8],
    ]);
    expect(events[1]).toMatchObject({ stream: 'stdout', data: Buffer.from('one'), atUs: 5000 });
    expect(events[4]).toMatchObject({
      stream: 'stderr',
      data: Buffer.from([0xff, 0x00]),
      atUs: 5000,
    });
  });

  it('[J1] (36, D1 of agent-tty) goes on behind a quarter of a million events', async () => {
    const { journal } = makeJournal();
    for (let index = 0; index < 260_000; index += 1) {
      journal.append({ kind: 'note', body: { index } });
      if (index % 10_000 === 0) await journal.visible();
    }
    await journal.visible();
    const { records, nextAfter } = await readPage(journal, { after: 259_990, maxBytes: 65_536 });
    expect(nextAfter).toBe(260_000);
    expect(Array.from(decodeRecords(records), ({ seq }) => seq)).toEqual(
      Array.from({ length: 10 }, (_, index) => 259_991 + index),
    );
  });

  it('[J2] joins output that arrives in one turn into one event, and never across streams or 64 KiB', async () => {
    const { journal } = makeJournal();
    for (let index = 0; index < 100; index += 1) journal.output('merged', Buffer.from('x'));
    journal.output('stderr', Buffer.from('y'));
    journal.output('merged', Buffer.alloc(100_000, 'z'));
    await journal.visible();
    const { events } = await readAll(journal, 1024 * 1024);
    const sizes = events.map((event) => (event.kind === 'output' ? event.data.length : 0));
    expect(sizes).toEqual([100, 1, 65_536, 34_464]);
  });

  it('[J3] shows an event only after it has been written', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk });
    journal.append(started);
    expect(journal.visibleSeq).toBe(0);
    journal.flush();
    expect(journal.visibleSeq).toBe(1);
    const held = Array.from(disk.files.values(), (file) => file.bytes);
    expect(Buffer.concat(held).includes('"pid":1')).toBe(true);
  });

  it('[J4] wakes every listener once per growth and forgets one that stopped', async () => {
    const { journal } = makeJournal();
    let first = 0;
    let second = 0;
    const stop = journal.onGrowth(() => (first += 1));
    journal.onGrowth(() => (second += 1));
    journal.output('merged', Buffer.from('a'));
    journal.output('merged', Buffer.from('b'));
    await journal.visible();
    stop();
    journal.output('merged', Buffer.from('c'));
    await journal.visible();
    expect([first, second]).toEqual([1, 2]);
  });

  it('[J5] reads a page after any number within its budget, always at least one event', async () => {
    const { journal } = makeJournal();
    for (let index = 0; index < 300; index += 1) {
      journal.output(index % 2 === 0 ? 'stdout' : 'stderr', Buffer.from(`line ${index}\n`));
    }
    await journal.visible();
    const whole = (await readAll(journal)).events;
    expect(whole).toHaveLength(300);
    for (const maxBytes of [1, 100, 5000]) {
      const { events, missed } = await readAll(journal, maxBytes);
      expect(missed).toEqual([]);
      expect(events).toEqual(whole);
    }
    const page = await readPage(journal, { after: 300, maxBytes: 10 });
    expect([page.records.length, page.nextAfter]).toEqual([0, 300]);
    expect((await readPage(journal, { after: 299, maxBytes: 10 })).nextAfter).toBe(300);
  });

  it('[J6] reads any byte range of the output, over events and segments', async () => {
    const { journal } = makeJournal({
      limits: { journalBytes: 64 * 1024 * 1024 },
      poolBytes: 64 * 1024,
    });
    const whole = Buffer.alloc(9 * 1024 * 1024);
    for (let at = 0; at < whole.length; at += 4) whole.writeUInt32LE(at, at);
    for (let at = 0; at < whole.length; at += 100_000) {
      journal.output('merged', whole.subarray(at, at + 100_000));
      await journal.visible();
    }
    for (const [offset, length] of [
      [0, 10],
      [4_194_300, 20],
      [1, 3_000_000],
      [whole.length - 5, 100],
    ] as const) {
      const parts: Buffer[] = [];
      for (let at = offset; at < Math.min(offset + length, whole.length);) {
        const found = await readRange(journal, at, offset + length - at);
        expect(found?.offset).toBe(at);
        parts.push(found?.bytes ?? Buffer.alloc(0));
        at += found?.bytes.length ?? Infinity;
      }
      expect(Buffer.concat(parts).equals(whole.subarray(offset, offset + length))).toBe(true);
    }
    expect(await readRange(journal, whole.length, 10)).toBeUndefined();
  });

  it('[J7] keeps the first part and the newest, drops whole segments between, and says exactly what is missing', async () => {
    const disk = new MemoryDisk();
    const limits = { journalBytes: 2 * 1024 * 1024, journalHeadBytes: 512 * 1024 };
    const { journal, usage } = makeJournal({ disk, limits });
    const total = 8 * 1024 * 1024;
    const chunk = 50_000;
    const whole = Buffer.alloc(total);
    for (let at = 0; at < total; at += 4) whole.writeUInt32LE(at, at);
    for (let at = 0; at < total; at += chunk) {
      journal.output('merged', whole.subarray(at, at + chunk));
      await journal.visible();
      expect(disk.bytes).toBeLessThanOrEqual(limits.journalBytes);
    }
    const { events, missed } = await readAll(journal);
    expect(usage.bytes).toBe(disk.bytes);
    expect(missed).toHaveLength(1);
    const [gap] = missed;
    const held = outputOf(events);
    expect(gap?.reason).toBe('limit');
    expect(held.length + (gap?.bytes ?? 0)).toBe(total);
    expect(held.length).toBeGreaterThan(1.5 * 1024 * 1024);
    const before = events.filter((event) => event.seq < (gap?.fromSeq ?? 0));
    const headBytes = outputOf(before).length;
    expect(headBytes).toBeGreaterThan(300 * 1024);
    expect(held.subarray(0, headBytes).equals(whole.subarray(0, headBytes))).toBe(true);
    expect(held.subarray(headBytes).equals(whole.subarray(total - (held.length - headBytes)))).toBe(
      true,
    );
    const inside = await readPage(journal, {
      after: (gap?.fromSeq ?? 0) + 3,
      maxBytes: 100_000,
      offset: headBytes + 777,
    });
    expect(inside.missed?.bytes).toBe((gap?.bytes ?? 0) - 777);
  });

  it('[J7] the part that is dropped is one, however the output was cut into writes', async () => {
    for (let seed = 1; seed <= 8; seed += 1) {
      const random = seeded(seed);
      const limits = { journalBytes: 1024 * 1024, journalHeadBytes: 256 * 1024 };
      const { journal } = makeJournal({ limits });
      for (let sent = 0; sent < 6 * 1024 * 1024;) {
        const bytes = Buffer.alloc(1 + Math.floor(random() * 90_000), 'x');
        journal.output('merged', bytes);
        sent += bytes.length;
        if (random() < 0.5) await journal.visible();
      }
      await journal.visible();
      const { events, missed } = await readAll(journal);
      expect(missed).toHaveLength(1);
      expect(outputOf(events).length + (missed[0]?.bytes ?? 0)).toBe(journal.offset);
    }
  });

  it('[J25] gives up everything but its beginning and the newest when it must, and the next keeper still knows what was started', async () => {
    const disk = new MemoryDisk();
    const { journal, usage } = makeJournal({ disk });
    journal.append(started);
    const print = async (bytes: number): Promise<void> => {
      for (let sent = 0; sent < bytes; sent += 50_000) {
        journal.output('merged', Buffer.alloc(50_000, 'x'));
        await journal.visible();
      }
    };
    await print(3_000_000);
    expect([journal.shrink(), journal.shrink(1_000_000)]).toEqual([0, 0]);
    // The only segment there is: its newest records go on in another, and it is cut.
    expect(journal.shrink(0)).toBeGreaterThan(2_500_000);
    expect(journal.shrink(0)).toBe(0);
    await print(100_000);
    expect([usage.bytes, disk.bytes]).toEqual([journal.bytesOnDisk, journal.bytesOnDisk]);
    expect(disk.bytes).toBeLessThan(500_000);
    const { events, missed } = await readAll(journal);
    expect(missed[0]?.toSeq).toBeLessThan((events.at(-1)?.seq ?? 0) - 2);
    expect([events[0]?.kind, missed.map(({ reason }) => reason)]).toEqual(['started', ['limit']]);
    expect(outputOf(events).length + (missed[0]?.bytes ?? 0)).toBe(journal.offset);
    const again = reopen(disk);
    expect(again.found).toMatchObject({ kind: 'unfinished', tornBytes: 0, started: { pid: 1 } });
    expect((await readAll(again.journal)).events.length).toBe(events.length);
  });

  it('[J25] the first segment stays whatever the head may have', async () => {
    const disk = new MemoryDisk();
    const limits = { journalBytes: 1024 * 1024, journalHeadBytes: 0 };
    const { journal } = makeJournal({ disk, limits });
    journal.append(started);
    for (let sent = 0; sent < 4_000_000; sent += 50_000) {
      journal.output('merged', Buffer.alloc(50_000, 'x'));
      await journal.visible();
    }
    expect(reopen(disk).found).toMatchObject({ kind: 'unfinished', started: { pid: 1 } });
  });

  it('[J26] an event above the limit of a record is refused by the writer, and the next one follows', async () => {
    const { journal } = makeJournal();
    journal.append(started);
    const text = 'x'.repeat(9 * 1024 * 1024);
    expect(() => journal.append({ kind: 'note', body: { text } })).toThrow('above the limit');
    journal.append(exited);
    journal.appendClosed({});
    await journal.visible();
    const { events, missed } = await readAll(journal);
    expect([events.map(({ kind }) => kind), missed]).toEqual([['started', 'exited', 'closed'], []]);
  });

  it('[J27] damage at the end of a file, or of a whole one, is called damage by the next keeper too', async () => {
    for (const harm of ['end', 'whole'] as const) {
      const disk = new MemoryDisk();
      const { journal } = makeJournal({ disk, limits: { journalBytes: 1024 * 1024 } });
      journal.append(started);
      for (let sent = 0; sent < 600_000; sent += 50_000) {
        journal.output('merged', Buffer.alloc(50_000, 'x'));
        await journal.visible();
      }
      const file = Array.from(disk.files.keys()).toSorted()[1] ?? '';
      const bytes = disk.files.get(file)?.bytes ?? Buffer.alloc(0);
      expect(bytes.length).toBeGreaterThan(50_000);
      bytes.fill(0xff, harm === 'end' ? bytes.length - 1000 : 0);
      const { events, missed } = await readAll(reopen(disk).journal);
      expect(missed.map(({ reason }) => reason)).toEqual(['damage']);
      expect(outputOf(events).length + (missed[0]?.bytes ?? 0)).toBe(600_000);
    }
  });

  it('[J40] a removed journal and one whose file was taken away are never read as one at its end', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk });
    journal.append(started);
    journal.output('merged', Buffer.from('hello'));
    await journal.visible();
    const { journal: stored } = reopen(disk);
    const taken = reopen(disk).journal;
    journal.remove();
    for (const path of disk.files.keys()) disk.remove(path);
    stored.removed = true;
    const codes = [journal, stored, taken].map(async (each) => {
      const reads = [readPage(each, { after: 0, maxBytes: 1000 }), readRange(each, 0, 1000)];
      const answers = await Promise.allSettled<unknown>(reads);
      return answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : answer));
    });
    expect(await Promise.all(codes)).toEqual([
      ['not_found', 'not_found'],
      ['not_found', 'not_found'],
      ['storage_unavailable', 'storage_unavailable'],
    ]);
  });

  it('[J8] finds a finished journal again from its last record, with everything in it', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk });
    journal.append(started);
    journal.output('merged', Buffer.from('hello'));
    journal.append(exited);
    journal.appendClosed({ facts: { id: 'p1' } });
    await journal.visible();
    journal.release();
    expect(disk.openFiles).toBe(0);
    const again = reopen(disk);
    expect(again.found).toMatchObject({
      kind: 'finished',
      seq: 4,
      closed: { bytes: 5, facts: { id: 'p1' } },
    });
    expect(await readAll(again.journal)).toEqual(await readAll(journal));
  });

  it('[J9] refuses to append after the end', async () => {
    const { journal } = makeJournal();
    journal.appendClosed({});
    expect(() => journal.append(exited)).toThrow('after the journal was closed');
    expect(() => journal.output('merged', Buffer.from('x'))).toThrow(
      'after the journal was closed',
    );
  });

  it('[J10] goes on numbering after an unfinished journal', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk });
    journal.append(started);
    journal.output('pty', Buffer.from('half'));
    await journal.visible();
    journal.release();
    const { found } = reopen(disk);
    expect(found).toMatchObject({
      kind: 'unfinished',
      seq: 2,
      offset: 4,
      started: { pid: 1 },
      tornBytes: 0,
    });
  });
});

describe('the file of the next segment', () => {
  const limits = { journalBytes: 8 * 64 * 1024, journalHeadBytes: 128 * 1024 };
  const most = Buffer.alloc(50_000, 'x');
  const names = (disk: MemoryDisk) => Array.from(disk.files.keys(), (path) => path.slice(-8, -4));

  it('[J19] is made when this one is nearly full, used in its turn, and gone when it is not needed', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk, limits });
    journal.append(started);
    journal.output('merged', most);
    await journal.visible();
    expect(names(disk)).toEqual(['0001', '0002']);
    expect(journal.segments().length).toBe(1);
    journal.output('merged', most);
    await journal.visible();
    expect(journal.segments().map(({ number }) => number)).toEqual([1, 2]);
    expect(names(disk)).toEqual(['0001', '0002', '0003']);
    journal.append(exited);
    journal.appendClosed({});
    await journal.visible();
    journal.release();
    expect(names(disk)).toEqual(['0001', '0002']);
    expect(disk.openFiles).toBe(0);
  });

  it('[J19] left empty by a killed keeper is nothing: the torn end before it is cut, the finished stays finished', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk, limits });
    journal.append(started);
    journal.output('merged', most);
    await journal.visible();
    const [first = ''] = disk.files.keys();
    const whole = disk.files.get(first)?.bytes ?? Buffer.alloc(0);
    disk.files.set(first, { bytes: Buffer.concat([whole, Buffer.from('torn')]) });
    expect(reopen(disk).found).toMatchObject({ kind: 'unfinished', tornBytes: 4, offset: 50_000 });
    expect(names(disk)).toEqual(['0001']);

    const other = new MemoryDisk();
    const { journal: ended } = makeJournal({ disk: other, limits });
    ended.append(started);
    ended.output('merged', most);
    await ended.visible();
    ended.append(exited);
    ended.appendClosed({});
    await ended.visible();
    expect(names(other)).toEqual(['0001', '0002']);
    expect(reopen(other).found).toMatchObject({ kind: 'finished', seq: 5 });
    expect(names(other)).toEqual(['0001']);
  });

  it('[J19] is waited for by a flood, and never made for a journal that was removed meanwhile', async () => {
    const disk = new MemoryDisk();
    const { journal, usage } = makeJournal({ disk, limits });
    journal.append(started);
    const make = disk.createAsync.bind(disk);
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    disk.createAsync = (path) => held.then(() => make(path));
    for (let turn = 0; turn < 4; turn += 1) {
      journal.output('merged', most);
      journal.flush();
      await Promise.resolve();
    }
    await new Promise(setImmediate);
    expect(journal.segments().every(({ size }) => size <= 2 * 64 * 1024)).toBe(true);
    journal.remove();
    go();
    await new Promise(setImmediate);
    expect(names(disk)).toEqual([]);
    expect(usage.bytes).toBe(0);
    expect(disk.openFiles).toBe(0);
  });

  it('[J19] whose making the disk refuses is made, and refused, when it is needed', async () => {
    const disk = new MemoryDisk();
    const { journal } = makeJournal({ disk, limits });
    journal.append(started);
    const make = disk.createAsync.bind(disk);
    disk.createAsync = () => Promise.reject(new Error('not now'));
    journal.output('merged', most);
    await journal.visible();
    disk.createAsync = make;
    journal.output('merged', most);
    await journal.visible();
    expect(outputOf((await readAll(journal)).events).length).toBe(100_000);
    expect(journal.segments().length).toBe(2);
  });
});
