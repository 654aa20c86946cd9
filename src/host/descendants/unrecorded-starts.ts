// Programs whose start is told to nobody: their keeper was killed between the spawn and the first record of the journal,
// or the start failed after the program had begun. Whoever asked for the start cannot end them, so they are ended here.

import type { Child } from '../child/child.ts';
import { findFamilies, signalGroup, signalMembers, type Family } from './descendants.ts';
import { MARKER_NAME } from '../start/environment.ts';
import { loadPosix } from '../../system/posix.ts';

/** Rounds of KILL: each catches what was forked while the one before was sent. */
const KILL_ROUNDS = 50;

export async function killUnrecordedStarts(serials: readonly string[]): Promise<void> {
  const posix = loadPosix();
  if (!posix || serials.length === 0) return;
  // Only the marker counts: nothing else is known of them.
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
    // Nobody is left, or nobody that may be signalled.
    if (reached === 0) return;
  }
}

/** Its number is its group's, and ours as long as nobody has reaped it. What left the group has the marker. */
export async function endUnrecorded(child: Child, serial: string): Promise<void> {
  child.release();
  signalGroup(child.pid, 'SIGKILL');
  await killUnrecordedStarts([serial]);
}
