// Leases: how long processes live without a caller that renews the lease. A lease without a name covers all processes
// of its owner and has one holder. A named lease covers the processes started under it.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { ProcessFacts } from '../process/facts.ts';
import type { HeldProcess } from '../process/held-process.ts';
import type { KeptLease, LeaseFile } from './lease-file.ts';
import { Shares } from '../shares.ts';

interface Lease {
  readonly kept: KeptLease;
  readonly untilMs: number;
  readonly cancel: () => void;
}

export interface LeasesOptions {
  readonly clock: Clock;
  readonly file: LeaseFile;
  /** Limit of named leases over all owners. */
  readonly limit: number;
  /** Ends the processes that a lease covers. */
  readonly end: (concerns: (facts: ProcessFacts) => boolean, by: string) => void;
}

/** Recorded as the sender of the signal that ends a process with its lease. */
export const LEASE_ENDED = 'lease ended';
/** Time for a caller to open its lease again if the file no longer has it. */
const UNKNOWN_LEASE_MS = 15_000;

export class Leases {
  private readonly options: LeasesOptions;
  private readonly leases = new Map<string, Lease>();
  private readonly named: Shares;

  constructor(options: LeasesOptions) {
    this.options = options;
    this.named = new Shares('leaseCount', options.limit);
  }

  /** Restores the leases of an earlier host: those of a killed host get their whole time again. */
  restore(recovered: Iterable<Pick<HeldProcess, 'facts' | 'settled'>>): void {
    const { clock, file } = this.options;
    for (const { untilMs, ...kept } of file.load())
      this.grant(kept, untilMs === undefined ? kept.ttlMs : untilMs - clock.wallMs());
    for (const { facts, settled } of recovered) {
      const { owner, lease: name } = facts;
      if (name !== undefined && !settled && !this.covers(facts))
        this.grant({ owner, name, ttlMs: UNKNOWN_LEASE_MS }, UNKNOWN_LEASE_MS);
    }
    this.save();
  }

  /** Returns whether `holder` holds it now: a renewal by a former holder changes nothing. */
  set(owner: Owner, { holder, ttlMs, mode, spareLabel }: Params<'lease'>): boolean {
    const known = this.leases.get(keyOf({ owner }));
    if (!known && mode !== 'open') throw new HoldfastError('not_found', 'There is no such lease.');
    if (mode === 'renew' && known?.kept.holder !== holder) return false;
    this.grant({ owner, holder, ttlMs, spareLabel }, ttlMs);
    const { kept } = known ?? {};
    if (kept?.holder !== holder || kept.ttlMs !== ttlMs || kept.spareLabel !== spareLabel)
      this.save();
    return true;
  }

  /** Opens or renews a named lease; a time of 0 ends it. Ending a lease that is not open is no error. */
  hold(owner: Owner, { name, ttlMs }: Params<'holdLease'>): void {
    const known = this.leases.get(keyOf({ owner, name }));
    if (ttlMs === 0) {
      if (known) this.end(known.kept);
      return;
    }
    if (!known && !this.named.admits(owner)) throw this.named.refusal(owner, 'leases are open');
    this.grant({ owner, name, ttlMs }, ttlMs);
    if (known?.kept.ttlMs !== ttlMs) this.save();
  }

  /** Whether the lease of a start is open; true for a start without one. */
  covers({ owner, lease: name }: { owner: Owner; lease?: string | undefined }): boolean {
    return name === undefined || this.leases.has(keyOf({ owner, name }));
  }

  /** Stores the remaining time for the next host. */
  close(): void {
    const left = [...this.leases.values()];
    for (const { cancel } of left) cancel();
    this.leases.clear();
    this.options.file.save(left.map(({ kept, untilMs }) => ({ ...kept, untilMs })));
  }

  private grant(kept: KeptLease, ttlMs: number): void {
    const { clock } = this.options;
    const key = keyOf(kept);
    const known = this.leases.get(key);
    known?.cancel();
    if (!known && kept.name !== undefined) this.named.add(kept.owner);
    const leftMs = Math.max(0, ttlMs);
    const cancel = clock.after(leftMs, () => this.end(kept));
    this.leases.set(key, { kept, untilMs: clock.wallMs() + leftMs, cancel });
  }

  private end(kept: KeptLease): void {
    const key = keyOf(kept);
    this.leases.get(key)?.cancel();
    this.leases.delete(key);
    if (kept.name !== undefined) this.named.delete(kept.owner);
    this.save();
    const { owner, name, spareLabel } = kept;
    const isSpared = ({ labels = {} }: ProcessFacts): boolean =>
      spareLabel !== undefined && Object.hasOwn(labels, spareLabel);
    const concerns = (facts: ProcessFacts): boolean =>
      facts.owner === owner && (name === undefined ? !isSpared(facts) : facts.lease === name);
    this.options.end(concerns, name === undefined ? 'lease ran out' : LEASE_ENDED);
  }

  private save(): void {
    this.options.file.save([...this.leases.values()].map(({ kept }) => kept));
  }
}

/** A name contains no space. */
function keyOf({ owner, name = '' }: Pick<KeptLease, 'owner' | 'name'>): string {
  return `${name} ${owner}`;
}
