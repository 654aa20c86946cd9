// Brings journals to the disk itself, so that a loss of power costs little: those of live processes about once a second,
// one after the other; those of ended processes when they are large, and then memory lets go of them. A small journal that
// ends within its second is left to the kernel.

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
  /** Files of ended processes, the oldest first. */
  private readonly ended: string[] = [];
  private puttingAway: Promise<void> | undefined;

  constructor(options: SyncerOptions) {
    this.options = options;
  }

  mark(journal: Journal): void {
    this.dirty.add(journal);
    this.cancel ??= this.options.clock.after(EVERY_MS, () => void this.syncAll());
  }

  forget(journal: Journal): void {
    this.dirty.delete(journal);
  }

  /**
   * Output that nobody adds to is seldom read again. In memory it would stand where the next flood could: new memory costs
   * twice what used memory does, and in a small virtual machine, which gives back what is free, twelve times.
   */
  syncAndEvict(journal: EndedJournal): void {
    this.ended.push(...journal.filesBeforeLast);
    if (this.ended.length > 0) this.puttingAway ??= this.putAllAway();
  }

  /** Resolves when no file is open. */
  async close(): Promise<void> {
    this.cancel?.();
    this.dirty.clear();
    this.ended.length = 0;
    await this.puttingAway;
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
    if (more) this.mark(more);
  }

  private async putAllAway(): Promise<void> {
    for (let path = this.ended.shift(); path !== undefined; path = this.ended.shift()) {
      try {
        await this.putFileAway(path);
      } catch (error) {
        // Forgotten meanwhile.
        if (errnoOf(error) !== 'ENOENT') this.failed(error);
      }
    }
    this.puttingAway = undefined;
  }

  private async putFileAway(path: string): Promise<void> {
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
