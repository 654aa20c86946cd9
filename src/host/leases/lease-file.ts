// Stores leases, so that they survive a killed keeper: one small file, rewritten when a lease is opened, taken, changed
// or ended. A renewal changes nothing in it.

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { errnoOf } from '../../base/disk.ts';
import type { Owner } from '../../protocol/host-api.ts';

export interface KeptLease {
  readonly owner: Owner;
  /** Covers the processes started under it; a lease without a name covers all processes of its owner. */
  readonly name?: string;
  /** For a lease without a name: the caller that may renew it. */
  readonly holder?: string;
  readonly ttlMs: number;
  readonly spareLabel?: string | undefined;
  /** Expiry by the wall clock. Only set by a host that was closed; after a kill the lease gets its whole time again. */
  readonly untilMs?: number;
}

export class LeaseFile {
  private readonly path: string;
  private readonly report: (message: string) => void;

  constructor(path: string, report: (message: string) => void) {
    this.path = path;
    this.report = report;
  }

  /** If the file cannot be read, only its leases are lost. */
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

  /** If the disk refuses, that is reported and the leases continue in memory. */
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
