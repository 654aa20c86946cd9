// Deleting exited processes, for `prune` and `tty gc`: which of them may go, and their removal.

import type { HostApi } from '../../protocol/host-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { isError } from '../caller.ts';

export interface ExitedFilter {
  /** Only those that ended at least this long ago. */
  readonly olderMs: number;
  /** Only those that were lost with their keeper. */
  readonly lostOnly?: boolean;
}

/** Why a process is kept; undefined when it may be deleted. One with live descendants is kept, so that these can be stopped. */
export function whyKept(
  { state, settled, closedAtMs, exitedAtMs, startedAtMs }: ProcessInfo,
  { olderMs, lostOnly }: ExitedFilter,
): 'active' | 'not-stale' | 'too-recent' | undefined {
  if (!settled || (state !== 'closed' && state !== 'lost')) return 'active';
  if (lostOnly && state !== 'lost') return 'not-stale';
  const endedAtMs = closedAtMs ?? exitedAtMs ?? startedAtMs;
  return Date.now() - endedAtMs < olderMs ? 'too-recent' : undefined;
}

/** False when it was deleted already, by retention or by another caller. */
export async function removeExited(host: HostApi, { id, owner }: ProcessInfo): Promise<boolean> {
  try {
    await host.remove(owner, { id });
    return true;
  } catch (error) {
    if (!isError(error, 'not_found')) throw error;
    return false;
  }
}
