// Leases: for how long an owner's processes live without anybody who answers for them. Whoever does renews the lease;
// when it runs out, the owner's processes are ended. It has one holder, and the one who takes it over is the holder.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';

interface Lease {
  readonly holder: string;
  readonly cancel: () => void;
}

export class Leases {
  private readonly clock: Clock;
  private readonly ranOut: (owner: Owner, spareLabel: string | undefined) => void;
  private readonly leases = new Map<Owner, Lease>();

  constructor(clock: Clock, ranOut: (owner: Owner, spareLabel: string | undefined) => void) {
    this.clock = clock;
    this.ranOut = ranOut;
  }

  /** Answers whether `holder` holds it now: a renewal by somebody from whom it was taken changes nothing. */
  set(owner: Owner, { holder, ttlMs, mode, spareLabel }: Params<'lease'>): boolean {
    const known = this.leases.get(owner);
    if (!known && mode !== 'open') throw new HoldfastError('not_found', 'There is no such lease.');
    if (mode === 'renew' && known?.holder !== holder) return false;
    known?.cancel();
    const cancel = this.clock.after(ttlMs, () => {
      this.leases.delete(owner);
      this.ranOut(owner, spareLabel);
    });
    this.leases.set(owner, { holder, cancel });
    return true;
  }

  close(): void {
    for (const { cancel } of this.leases.values()) cancel();
    this.leases.clear();
  }
}
