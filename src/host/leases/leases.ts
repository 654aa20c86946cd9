// Leases: for how long processes live without a caller who renews their lease. A lease without a name concerns all processes
// of its owner and has one holder. A lease with a name concerns the processes that were started under it.

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
  /** Leases with a name, over all owners. */
  readonly limit: number;
  /** Ends the processes that a lease concerned. */
  readonly end: (concerns: (facts: ProcessFacts) => boolean, by: string) => void;
}

/** Who ended a process that was started under a lease. */
export const LEASE_ENDED = 'lease ended';
/** For a process whose lease the file does not have any more: its caller, if it is alive, opens the lease again by then. */
const UNKNOWN_LEASE_MS = 15_000;

export class Leases {
  private readonly options: LeasesOptions;
  private readonly leases = new Map<string, Lease>();
  private readonly named: Shares;

  constructor(options: LeasesOptions) {
    this.options = options;
    this.named = new Shares('leaseCount', options.limit);
  }

  /** Takes up the leases of an earlier host: those of one that was killed have their whole time again. */
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

  /** Answers whether `holder` holds it now: a renewal by somebody from whom it was taken changes nothing. */
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

  /** Opens or renews a lease by name; without any time it ends at once. Ending one that is not open is no failure. */
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

  /** Whether the lease that a start names is open; one without a lease needs none. */
  covers({ owner, lease: name }: { owner: Owner; lease?: string | undefined }): boolean {
    return name === undefined || this.leases.has(keyOf({ owner, name }));
  }

  /** What is left of them is kept for the host that comes next. */
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

/** A name has no space in it. */
function keyOf({ owner, name = '' }: Pick<KeptLease, 'owner' | 'name'>): string {
  return `${name} ${owner}`;
}
