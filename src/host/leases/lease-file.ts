// Where leases are kept, so that they outlive a keeper that is killed: one small file, written anew when a lease is opened,
// taken, given another time or over. A renewal changes nothing in it.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { errnoOf } from '../../base/disk.ts';
import type { Owner } from '../../protocol/host-api.ts';

export interface KeptLease {
  readonly owner: Owner;
  /** Concerns the processes that were started under it; a lease without a name concerns all of its owner. */
  readonly name?: string;
  /** Of a lease without a name: the one who may renew it. */
  readonly holder?: string;
  readonly ttlMs: number;
  readonly spareLabel?: string | undefined;
  /** By the wall clock: when it runs out. Only of a host that was closed; whoever was killed renewed it to the end. */
  readonly untilMs?: number;
}

export class LeaseFile {
  private readonly path: string;
  private readonly report: (message: string) => void;

  constructor(path: string, report: (message: string) => void) {
    this.path = path;
    this.report = report;
  }

  /** A file that cannot be read costs the leases in it, and nothing else. */
  load(): KeptLease[] {
    try {
      const kept: unknown = JSON.parse(readFileSync(this.path, 'utf8'));
      if (!Array.isArray(kept)) throw new TypeError('no list');
      return kept.filter(isLease);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') this.report(`leases cannot be read: ${String(error)}`);
      return [];
    }
  }

  /** A disk that does not take it is told of; the leases go on in memory. */
  save(leases: readonly KeptLease[]): void {
    try {
      if (leases.length === 0) {
        rmSync(this.path, { force: true });
        return;
      }
      const next = `${this.path}.new`;
      rmSync(next, { force: true });
      writeFileSync(next, JSON.stringify(leases), { flag: 'wx', mode: 0o600 });
      renameSync(next, this.path);
    } catch (error) {
      this.report(`leases cannot be kept: ${String(error)}`);
    }
  }
}

function isLease(value: unknown): value is KeptLease {
  if (typeof value !== 'object' || value === null) return false;
  const { owner, name, holder, ttlMs } = value as Partial<KeptLease>;
  const whose = typeof (name ?? holder);
  return typeof owner === 'string' && whose === 'string' && typeof ttlMs === 'number';
}
