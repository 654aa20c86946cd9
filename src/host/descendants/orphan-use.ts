// Counts what an orphan has used for the process that it came from. Whose it was is asked while it is a zombie: once it is
// reaped, /proc knows nothing of it.

import type { ResourceUse } from '../process/resource-use.ts';
import { isShortage, systemTable } from '../../system/proc-table.ts';
import type { Used } from '../../system/resources.ts';
import { Children } from '../child/children.ts';
import type { HostOptions } from '../host-options.ts';
import type { DescendantTracker, Tracked } from './descendant-tracker.ts';
import type { Owners, Owner } from './membership.ts';
import type { Orphans } from './orphans.ts';

interface Counted extends Owner {
  readonly use: ResourceUse;
}

/** To be called before the orphan is reaped; the answer takes what it has used. */
function orphanAccount<P extends Counted>(
  pid: number,
  { owners, orphans }: { readonly owners: Owners<P>; readonly orphans: Orphans<P> },
): (used: Used) => void {
  const process = orphans.ownerOf(pid) ?? ownerBySession(pid, owners);
  if (process) return (used) => process.use.add(used);
  return () => {
    for (const each of owners.all()) each.use.miss();
  };
}

/** Undefined as well if no descriptor is free to look: the orphan is reaped all the same. */
function ownerBySession<P extends Counted>(pid: number, owners: Owners<P>): P | undefined {
  try {
    const entry = systemTable.readEntry(pid);
    return entry && owners.inSession(entry);
  } catch (error) {
    if (isShortage(error)) return undefined;
    throw error;
  }
}

/** The children of a host: the tracker learns which were reaped, and each process what its orphans used. */
export function openChildren<P extends Counted & Tracked>(
  { adopts = false, children: kind }: HostOptions,
  tracker: () => DescendantTracker<P>,
): Children {
  return new Children({
    adopts,
    kind,
    reaped: (pid) => tracker().reaped(pid),
    accountFor: (pid) => orphanAccount(pid, tracker()),
  });
}
