// Leases: for how long an owner's processes live without anybody who answers for them. Whoever does renews the lease;
// when it runs out, the owner's processes are ended. It has one holder, and the one who takes it over is the holder.

import type { Clock } from '../base/clock.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import type { KeptLease, LeaseFile } from './lease-file.ts';

interface Lease {
  readonly kept: KeptLease;
  readonly untilMs: number;
  readonly cancel: () => void;
}

export interface LeasesOptions {
  readonly clock: Clock;
  readonly file: LeaseFile;
  readonly ranOut: (owner: Owner, spareLabel: string | undefined) => void;
}

export class Leases {
  private readonly options: LeasesOptions;
  private readonly leases = new Map<Owner, Lease>();

  constructor(options: LeasesOptions) {
    this.options = options;
  }

  /** Takes up the leases of an earlier host: those of one that was killed have their whole time again. */
  restore(): void {
    const { clock, file } = this.options;
    for (const { untilMs, ...kept } of file.load())
      this.grant(kept, untilMs === undefined ? kept.ttlMs : untilMs - clock.wallMs());
    this.save();
  }

  /** Answers whether `holder` holds it now: a renewal by somebody from whom it was taken changes nothing. */
  set(owner: Owner, { holder, ttlMs, mode, spareLabel }: Params<'lease'>): boolean {
    const known = this.leases.get(owner);
    if (!known && mode !== 'open') throw new HoldfastError('not_found', 'There is no such lease.');
    if (mode === 'renew' && known?.kept.holder !== holder) return false;
    known?.cancel();
    this.grant({ owner, holder, ttlMs, spareLabel }, ttlMs);
    const { kept } = known ?? {};
    if (kept?.holder !== holder || kept.ttlMs !== ttlMs || kept.spareLabel !== spareLabel)
      this.save();
    return true;
  }

  /** What is left of them is kept for the host that comes next. */
  close(): void {
    const left = [...this.leases.values()];
    for (const { cancel } of left) cancel();
    this.leases.clear();
    this.options.file.save(left.map(({ kept, untilMs }) => ({ ...kept, untilMs })));
  }

  private grant(kept: KeptLease, ttlMs: number): void {
    const { clock, ranOut } = this.options;
    const { owner, spareLabel } = kept;
    const leftMs = Math.max(0, ttlMs);
    const cancel = clock.after(leftMs, () => {
      this.leases.delete(owner);
      this.save();
      ranOut(owner, spareLabel);
    });
    this.leases.set(owner, { kept, untilMs: clock.wallMs() + leftMs, cancel });
  }

  private save(): void {
    this.options.file.save([...this.leases.values()].map(({ kept }) => kept));
  }
}
