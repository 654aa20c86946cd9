// Programs whose start no caller knows: their keeper was killed between the spawn and the first record, or the start
// failed after the spawn. No caller can end them, so they are ended here.

import type { Child } from '../child/child.ts';
import { signalGroup, signalMembers, type Family } from './descendants.ts';
import { findFamilies } from './family-walk.ts';
import { MARKER_NAME } from '../start/environment.ts';
import { loadPosix } from '../../system/posix.ts';

/** Rounds of SIGKILL: each catches what was forked during the one before. */
const KILL_ROUNDS = 50;

export async function killUnrecordedStarts(serials: readonly string[]): Promise<void> {
  const posix = loadPosix();
  if (!posix || serials.length === 0) return;
  // Only the marker counts: nothing else is known about them.
  const families = serials.map((value): Family => ({
    rootPid: 0,
    reapedAtTicks: 0,
    marker: { name: MARKER_NAME, value },
  }));
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const { found } = await findFamilies(families);
    let reached = 0;
    for (const [index, family] of families.entries())
      reached += signalMembers(posix, family, found[index] ?? [], 'SIGKILL').reached.length;
    // None is left, or none that we may signal.
    if (reached === 0) return;
  }
}

/**
 * Its pid is that of its group, and cannot be reused before we reap it. Programs that left the group have the marker.
 */
export async function endUnrecorded(child: Child, serial: string): Promise<void> {
  child.release();
  signalGroup(child.pid, 'SIGKILL');
  await killUnrecordedStarts([serial]);
}
