// Counts parked calls per owner, and refuses them beyond the limit that owners share.

import type { Owner } from '../../protocol/host-api.ts';
import { Shares } from '../shares.ts';

interface Ends {
  readonly waited: (value: unknown) => unknown;
  readonly failed: (error: unknown) => never;
}

export class ParkedWaits {
  private readonly shares: Shares;
  /** One per owner: closures per wait would cost half a kilobyte each. */
  private readonly ends = new Map<Owner, Ends>();

  constructor(limit: number) {
    this.shares = new Shares('parkedWaits', limit);
  }

  get count(): number {
    return this.shares.total;
  }

  /** Whether this owner may park one more call. */
  admits(owner: Owner): boolean {
    return this.shares.admits(owner);
  }

  /** Not async: a suspended function costs half a kilobyte per parked wait. */
  park<T>(owner: Owner, wait: () => Promise<T>): Promise<T> {
    if (!this.admits(owner))
      return Promise.reject(this.shares.refusal(owner, 'callers are waiting'));
    this.shares.add(owner);
    const { waited, failed } = this.endsOf(owner);
    return wait().then(waited, failed) as Promise<T>;
  }

  private endsOf(owner: Owner): Ends {
    const known = this.ends.get(owner);
    if (known) return known;
    const over = (): void => {
      this.shares.delete(owner);
      if (this.shares.useOf(owner) === 0) this.ends.delete(owner);
    };
    const ends: Ends = {
      waited: (value) => {
        over();
        return value;
      },
      failed: (error) => {
        over();
        throw error;
      },
    };
    this.ends.set(owner, ends);
    return ends;
  }
}
