// The sums of records by a quicker library than Node's own, where the system has one: with Node's they are a quarter of the
// keeper's time in a flood.

import { sumLargeBy } from '../base/crc32.ts';
import { once } from '../base/once.ts';
import { quickCrc32 } from './posix-library.ts';

/** Once for this program; its other threads go on as before. */
export const useQuickSums = once(() => {
  const quick = quickCrc32();
  if (quick) sumLargeBy(quick);
});
