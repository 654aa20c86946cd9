// Watches of clients that poll for events instead of reading a stream. One that nobody polls for a while is closed.

import type { Clock } from '../../../base/clock.ts';
import { randomId } from '../../../base/ids.ts';
import type { Owner } from '../../../protocol/host-api.ts';
import { E2bError } from '../errors.ts';
import type { FolderWatch, WatchEvent } from './folder-watch.ts';

const MAX_WATCHES = 256;
const UNPOLLED_MS = 10 * 60_000;

interface PolledWatch {
  readonly owner: Owner;
  readonly watch: FolderWatch;
  cancel: () => void;
}

export class PolledWatches {
  private readonly clock: Clock;
  private readonly watches = new Map<string, PolledWatch>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  async add(owner: Owner, watch: FolderWatch): Promise<{ watcherId: string }> {
    if (this.watches.size >= MAX_WATCHES) {
      watch.close();
      throw new E2bError('resource_exhausted', `more than ${MAX_WATCHES} watchers`);
    }
    const watcherId = randomId();
    this.watches.set(watcherId, { owner, watch, cancel: this.expiry(watcherId) });
    return { watcherId };
  }

  async take(owner: Owner, id: string): Promise<{ events: readonly WatchEvent[] }> {
    const polled = this.find(owner, id);
    polled.cancel();
    polled.cancel = this.expiry(id);
    const events = await polled.watch.next(0, this.clock);
    if (events !== 'closed') return { events };
    this.end(id);
    throw new E2bError('not_found', 'the watched directory is gone');
  }

  remove(owner: Owner, id: string): Record<string, never> {
    this.find(owner, id);
    this.end(id);
    return {};
  }

  private find(owner: Owner, id: string): PolledWatch {
    const polled = this.watches.get(id);
    if (polled?.owner === owner) return polled;
    throw new E2bError('not_found', `watcher with id ${id} not found`);
  }

  private expiry(id: string): () => void {
    return this.clock.after(UNPOLLED_MS, () => this.end(id));
  }

  private end(id: string): void {
    const polled = this.watches.get(id);
    polled?.cancel();
    polled?.watch.close();
    this.watches.delete(id);
  }
}
