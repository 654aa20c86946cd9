// Watches the limits of one process that the kernel does not enforce, until none of its descendants is left.

import type { SignalResult } from '../../protocol/host-api.ts';
import type { DescendantTracker } from '../descendants/descendant-tracker.ts';
import type { SignalRequest } from '../descendants/termination.ts';
import type { HeldProcess } from '../process/held-process.ts';
import type { Decision } from './confiner.ts';
import type { ResourceControl } from './resource-control.ts';

export function watchProcess(
  process: HeldProcess,
  limits: Decision['watched'],
  tools: {
    readonly control: ResourceControl;
    readonly tracker: DescendantTracker<HeldProcess>;
    signal(process: HeldProcess, request: SignalRequest): Promise<SignalResult>;
  },
): void {
  if (limits.memory === undefined && limits.pids === undefined) return;
  const { serial, pid } = process.facts;
  const stop = tools.control.watch.add({
    limits,
    members: async () => {
      const known = tools.control.members(serial);
      if (known) return known;
      const { found } = await tools.tracker.search(process);
      return [...(process.rootAlive ? [pid] : []), ...found.map((entry) => entry.pid)];
    },
    end: (cause, by) => {
      process.causes = [...process.causes, cause];
      // It may have ended by itself meanwhile.
      tools.signal(process, { signal: 'SIGKILL', by }).catch(() => undefined);
    },
  });
  const unsubscribe = process.onChange(() => {
    if (!process.settled) return;
    stop();
    unsubscribe();
  });
}
