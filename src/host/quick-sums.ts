// The sums of records by a quicker library than Node's own, where the system has one: half of the work of a flood is summing.

import { sumLargeBy } from '../base/crc32.ts';
import { quickCrc32 } from './posix-library.ts';

/** Once for this program; its other threads go on as before. */
export const useQuickSums = once(() => {
  const quick = quickCrc32();
  if (quick) sumLargeBy(quick);
});

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (!done) action();
    done = true;
  };
}
