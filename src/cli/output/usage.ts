// What a process has cost, in words for a person.

import type { Usage } from '../../protocol/process.ts';
import { formatBytes, formatDuration } from '../arguments/units.ts';

/** "1.2s of processor time, 120 MB of memory". A peak that is not known is left out. */
export function usageWords({ userMs, systemMs, peakMemoryBytes, complete }: Usage): string {
  const memory =
    peakMemoryBytes === undefined ? '' : `, ${formatBytes(peakMemoryBytes)} of memory at its peak`;
  const least = complete ? '' : 'at least ';
  return `${least}${formatDuration(userMs + systemMs)} of processor time${memory}`;
}
