// Programs whose start nobody was told of: their keeper was killed between the spawn and the first record of the
// journal, which is empty. Whoever asked for the start got no answer and cannot end them, so they are ended here.

import { findFamilies, signalMembers, type Family } from './descendants.ts';
import { MARKER_NAME } from './environment.ts';
import { loadPosix } from './posix.ts';

export async function endUntold(serials: readonly string[]): Promise<void> {
  const posix = loadPosix();
  if (!posix || serials.length === 0) return;
  // Only the marker counts: what else is known of them died with their keeper.
  const families = serials.map((value): Family => ({
    rootPid: 0,
    reapedAtTicks: 0,
    marker: { name: MARKER_NAME, value },
  }));
  const found = await findFamilies(families);
  for (const [index, family] of families.entries())
    signalMembers(posix, family, found[index] ?? [], 'SIGKILL');
}
