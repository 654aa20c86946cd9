// Programs on this machine that are not processes of the host: its callers, and helpers that it starts for itself.

import type { CallerOrigin } from '../protocol/host-api.ts';
import type { LaunchPlan } from '../protocol/process.ts';
import type { Child } from './child/child.ts';
import { systemTable } from '../system/proc-table.ts';
import { confinedElsewhere } from './descendants/confined-elsewhere.ts';
import { originOf, type Known } from './descendants/origin.ts';
import type { ProcessLifecycle } from './lifecycle.ts';
import type { HeldProcess } from './process/held-process.ts';

export class LocalPrograms {
  private readonly lifecycle: ProcessLifecycle;

  constructor(lifecycle: ProcessLifecycle) {
    this.lifecycle = lifecycle;
  }

  /** Whether a program came from a process of this host, and whose that is. The caller holds the program by a pidfd. */
  async originOf(pid: number): Promise<CallerOrigin> {
    const { starter, tracker, registry } = this.lifecycle;
    const known: Known<HeldProcess> = {
      rootOf: (root) => tracker.owners.rootOf(root),
      inSession: (entry) => tracker.owners.inSession(entry),
      bySerial: (serial) => registry.bySerial(serial),
    };
    let origin = originOf(pid, known, systemTable);
    if (origin === 'unknown') {
      // A child can call before its start is in the registry.
      await starter.allUnderWay();
      origin = originOf(pid, known, systemTable);
    }
    if (origin === 'unknown') return { inside: true };
    if (origin === 'outside') {
      const confinedBy = confinedElsewhere(pid);
      return confinedBy ? { inside: true, confinedBy } : { inside: false };
    }
    return { inside: true, owner: origin.facts.owner };
  }

  /** A helper belongs to no process. It is reaped, and ends with the host. */
  startHelper(plan: LaunchPlan): Promise<Child> {
    return this.lifecycle.children.start(plan);
  }
}
