// Whether a program that did not come from this host is confined by something else: it is in a pid namespace below ours, as of
// a sandbox or a container, or another keeper took privileges from it. We cannot know what such a program may do.

import type { CallerOrigin } from '../../protocol/host-api.ts';
import { nameOf, statusOf, systemTable } from '../../system/proc-table.ts';
import { lineUpTo } from './origin.ts';

/**
 * The name of a keeper. Neither "node" nor "holdfast" is in it: an agent's `pkill node`, `killall node` or `pkill -f holdfast`
 * is meant for programs of its own.
 */
export const KEEPER_TITLE = 'hf-keeper';
/** The parent of the first process. */
const NOBODY = 0;

/** Undefined: by nothing that we can see. The caller holds the program by a pidfd. */
export function confinedElsewhere(pid: number): CallerOrigin['confinedBy'] {
  const { namespaces, hasNoNewPrivileges } = statusOf(pid);
  const isBelow = namespaces > statusOf(systemTable.self).namespaces;
  if (!isBelow && !hasNoNewPrivileges) return undefined;
  if (isOfAnotherKeeper(pid)) return 'keeper';
  return isBelow ? 'namespace' : undefined;
}

/** A keeper that started both of us separates nothing. */
function isOfAnotherKeeper(pid: number): boolean {
  const ours = ancestorsOf(systemTable.self);
  return ancestorsOf(pid).some((each) => !ours.includes(each) && nameOf(each) === KEEPER_TITLE);
}

/** Itself included. */
function ancestorsOf(pid: number): number[] {
  return lineUpTo(NOBODY, pid)?.entries.map((entry) => entry.pid) ?? [];
}
