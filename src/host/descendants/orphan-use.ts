// Counts what an orphan has used for the process that it came from. Whose it was is asked while it is a zombie: once it is
// reaped, /proc knows nothing of it.

import type { ResourceUse } from '../process/resource-use.ts';
import { systemTable } from '../../system/proc-table.ts';
import type { Used } from '../../system/resources.ts';
import type { Owners, Owner } from './membership.ts';
import type { Orphans } from './orphans.ts';

interface Counted extends Owner {
  readonly use: ResourceUse;
}

/** To be called before the orphan is reaped; the answer takes what it has used. */
export function orphanAccount<P extends Counted>(
  pid: number,
  { owners, orphans }: { readonly owners: Owners<P>; readonly orphans: Orphans<P> },
): (used: Used) => void {
  const entry = systemTable.readEntry(pid);
  const process = orphans.ownerOf(pid) ?? (entry && owners.inSession(entry));
  if (process) return (used) => process.use.add(used);
  return () => {
    for (const each of owners.all()) each.use.miss();
  };
}
