// Syncs journals, so that a loss of power costs little: those of live processes about once a second, one after the other;
// large ones of ended processes once, and then evicts them from the page cache. The kernel writes out small journals.

import type { Clock } from '../../base/clock.ts';
import { errnoOf, type Disk } from '../../base/disk.ts';
import type { EndedJournal } from '../read/ended-journal.ts';
import type { Journal } from './journal.ts';

const EVERY_MS = 1000;

export interface SyncerOptions {
  readonly clock: Clock;
  readonly disk: Disk;
  readonly report: (message: string) => void;
}

export class Syncer {
  private readonly options: SyncerOptions;
  private dirty = new Set<Journal>();
  private cancel: (() => void) | undefined;
  /** Files of ended processes, oldest first. */
  private readonly ended: string[] = [];
  private evicting: Promise<void> | undefined;

  constructor(options: SyncerOptions) {
    this.options = options;
  }

  markDirty(journal: Journal): void {
    this.dirty.add(journal);
    this.cancel ??= this.options.clock.after(EVERY_MS, () => void this.syncAll());
  }

  forget(journal: Journal): void {
    this.dirty.delete(journal);
  }

  /**
   * Output of an ended process is seldom read again. Evicted, its pages serve the next output: new memory costs twice as
   * much as used memory, and twelve times as much in a small virtual machine with a balloon.
   */
  syncAndEvict(journal: EndedJournal): void {
    this.ended.push(...journal.filesBeforeLast);
    if (this.ended.length > 0) this.evicting ??= this.evictAll();
  }

  /** Resolves when no file is open. */
  async close(): Promise<void> {
    this.cancel?.();
    this.dirty.clear();
    this.ended.length = 0;
    await this.evicting;
  }

  private async syncAll(): Promise<void> {
    const journals = this.dirty;
    this.dirty = new Set();
    for (const journal of journals) {
      try {
        await journal.sync();
      } catch (error) {
        this.failed(error);
      }
    }
    this.cancel = undefined;
    const [more] = this.dirty;
    if (more) this.markDirty(more);
  }

  private async evictAll(): Promise<void> {
    for (let path = this.ended.shift(); path !== undefined; path = this.ended.shift()) {
      try {
        await this.evictFile(path);
      } catch (error) {
        // ENOENT: its process was deleted meanwhile.
        if (errnoOf(error) !== 'ENOENT') this.failed(error);
      }
    }
    this.evicting = undefined;
  }

  private async evictFile(path: string): Promise<void> {
    const { disk } = this.options;
    const fd = disk.openRead(path);
    try {
      await disk.sync(fd);
      await disk.evictPages(fd);
    } finally {
      disk.close(fd);
    }
  }

  private failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.options.report(`a journal could not be synced: ${reason}`);
  }
}
