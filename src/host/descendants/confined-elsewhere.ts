// Whether a program that did not come from this host is confined by something else: another keeper, or a pid namespace below
// ours, as a container or a sandbox has. The keeper cannot know what such a program may do.

import type { CallerOrigin } from '../../protocol/host-api.ts';
import { nameOf, namespaceDepth, systemTable } from '../../system/proc-table.ts';
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
  const ours = ancestorsOf(systemTable.self) ?? [];
  const theirs = ancestorsOf(pid);
  // A keeper that started both of us separates nothing.
  if (!theirs || theirs.some((each) => !ours.includes(each) && nameOf(each) === KEEPER_TITLE))
    return 'keeper';
  return namespaceDepth(pid) > namespaceDepth(systemTable.self) ? 'namespace' : undefined;
}

/** Itself included; undefined when it has ended, or when the chain is too long to be honest. */
function ancestorsOf(pid: number): number[] | undefined {
  return lineUpTo(NOBODY, pid)?.entries.map((entry) => entry.pid);
}
