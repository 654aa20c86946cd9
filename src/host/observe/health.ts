// The figures of a host: what it holds, and whether everything can be stored.

import type { Results } from '../../protocol/host-api.ts';
import { residentBytes } from '../../system/resources.ts';
import type { ProcessLifecycle } from '../lifecycle.ts';
import { isDegraded } from '../process/process-info.ts';

export function healthOf(
  { registry, clock, usage, feed, children, limits, measures }: ProcessLifecycle,
  about: { readonly version: string; readonly startedUs: number; readonly parkedWaits: number },
): Results['health'] {
  const processes = [...registry.all()];
  return {
    version: about.version,
    pid: process.pid,
    uptimeMs: Math.round((clock.nowUs() - about.startedUs) / 1000),
    live: registry.size - registry.endedCount,
    ended: registry.endedCount,
    parkedWaits: about.parkedWaits,
    journalBytes: usage.bytes,
    rssBytes: residentBytes(),
    degraded: processes.filter(isDegraded).length + (feed.isStored ? 0 : 1),
    children: children.kind,
    measured: {
      ...measures.figures(),
      journals: {
        limitBytes: limits.totalBytes,
        open: usage.journals,
        refused: usage.refusals.count,
      },
    },
  };
}
