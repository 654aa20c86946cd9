// Idempotency keys whose start the host has not answered yet. Their processes are in no list so far.

import type { Owner } from '../../protocol/host-api.ts';

export class PendingKeys {
  private readonly counts = new Map<string, number>();

  has(owner: Owner, key: string): boolean {
    return this.counts.has(JSON.stringify([owner, key]));
  }

  async during<T>(owner: Owner, key: string, work: Promise<T>): Promise<T> {
    const name = JSON.stringify([owner, key]);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    try {
      return await work;
    } finally {
      const left = (this.counts.get(name) ?? 1) - 1;
      if (left > 0) this.counts.set(name, left);
      else this.counts.delete(name);
    }
  }
}
