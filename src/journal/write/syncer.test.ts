import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { MemoryDisk } from '../../../test/support/memory-disk.ts';
import { EndedJournal } from '../read/ended-journal.ts';
import { Segment } from '../read/segment.ts';
import { Syncer } from './syncer.ts';

/** Notes what is asked of it, file by file. */
class NotingDisk extends MemoryDisk {
  readonly asked: string[] = [];
  /** Resolves each sync, when set. */
  hold: Promise<void> | undefined;
  failing: string | undefined;
  private readonly names = new Map<number, string>();

  override openRead(path: string): number {
    const fd = super.openRead(path);
    this.names.set(fd, path.split('/').at(-1) ?? '');
    return fd;
  }

  override async sync(...[fd = -1]: number[]): Promise<void> {
    this.note('sync', fd);
    await this.hold;
    if (this.names.get(fd) === this.failing) throw Object.assign(new Error('EIO'), { code: 'EIO' });
  }

  override async evictPages(...[fd = -1]: number[]): Promise<void> {
    this.note('forget', fd);
  }

  private note(what: string, fd: number): void {
    this.asked.push(`${what} ${this.names.get(fd)}`);
  }
}

function ended(disk: MemoryDisk, id: string, files: number): EndedJournal {
  const segments = Array.from({ length: files }, (_, index) => {
    const range = { firstSeq: 1, firstOffset: 0, endSeq: 1, endOffset: 0, size: 0 };
    const segment = new Segment(disk, '/j', id, { ...range, number: index + 1 });
    disk.close(disk.create(segment.path));
    return segment;
  });
  return new EndedJournal(segments, { seq: 1, offset: 0, lostBytes: 0 });
}

function opened(): { disk: NotingDisk; syncer: Syncer; reports: string[] } {
  const disk = new NotingDisk();
  const reports: string[] = [];
  const report = (message: string): void => void reports.push(message);
  return { disk, reports, syncer: new Syncer({ clock: new FakeClock(), disk, report }) };
}

function turns(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe('what an ended process has printed', () => {
  it('[J24] is synced and evicted file by file, except the last file', async () => {
    const { disk, syncer, reports } = opened();
    syncer.syncAndEvict(ended(disk, 'a', 3));
    syncer.syncAndEvict(ended(disk, 'small', 1));
    syncer.syncAndEvict(ended(disk, 'b', 2));
    await turns();
    expect(disk.asked).toEqual([
      'sync a.0001.hfj',
      'forget a.0001.hfj',
      'sync a.0002.hfj',
      'forget a.0002.hfj',
      'sync b.0001.hfj',
      'forget b.0001.hfj',
    ]);
    expect(disk.openFiles).toBe(0);
    expect(reports).toEqual([]);
    await syncer.close();
  });

  it('[J24] is not evicted after a failed sync, which is reported; a removed file is skipped', async () => {
    const { disk, syncer, reports } = opened();
    disk.failing = 'a.0001.hfj';
    const [a, b] = [ended(disk, 'a', 2), ended(disk, 'b', 3)];
    disk.remove('/j/b.0001.hfj');
    syncer.syncAndEvict(a);
    syncer.syncAndEvict(b);
    await turns();
    expect(disk.asked).toEqual(['sync a.0001.hfj', 'sync b.0002.hfj', 'forget b.0002.hfj']);
    expect(reports).toEqual(['a journal could not be synced: EIO']);
    expect(disk.openFiles).toBe(0);
    await syncer.close();
  });

  it('[J24] is left as it is when the host closes, which waits for the file in progress', async () => {
    const { disk, syncer } = opened();
    let go = (): void => undefined;
    disk.hold = new Promise((resolve) => {
      go = resolve;
    });
    syncer.syncAndEvict(ended(disk, 'a', 4));
    const closed = syncer.close();
    expect(disk.openFiles).toBe(1);
    go();
    await closed;
    expect(disk.openFiles).toBe(0);
    expect(disk.asked).toEqual(['sync a.0001.hfj', 'forget a.0001.hfj']);
  });
});
