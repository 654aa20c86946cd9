// Brings the journals of live processes to the disk itself about once a second, one after the other, so that a loss of
// power costs little. A journal that ends within that second is left to the kernel.

import type { Clock } from '../base/clock.ts';
import type { Journal } from './journal.ts';

const EVERY_MS = 1000;

export class Syncer {
  private readonly clock: Clock;
  private readonly report: (message: string) => void;
  private dirty = new Set<Journal>();
  private cancel: (() => void) | undefined;

  constructor(clock: Clock, report: (message: string) => void) {
    this.clock = clock;
    this.report = report;
  }

  mark(journal: Journal): void {
    this.dirty.add(journal);
    this.cancel ??= this.clock.after(EVERY_MS, () => void this.syncAll());
  }

  forget(journal: Journal): void {
    this.dirty.delete(journal);
  }

  close(): void {
    this.cancel?.();
    this.dirty.clear();
  }

  private async syncAll(): Promise<void> {
    const journals = this.dirty;
    this.dirty = new Set();
    for (const journal of journals) {
      try {
        await journal.sync();
      } catch (error) {
        this.report(
          `a journal could not be synced: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
    this.cancel = undefined;
    const [more] = this.dirty;
    if (more) this.mark(more);
  }
}
