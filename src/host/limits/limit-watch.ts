// Watches limits that the kernel does not enforce here: looks at the processes of a start several times per second and ends all
// of them when they use more. Resident sizes count shared pages several times, so what looks too large is counted exactly
// before it is ended.

import { readFile } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import type { Cause } from '../../protocol/confinement/confinement.ts';
import type { GroupLimits } from '../../system/confine/cgroups.ts';
import { residentBytesOf } from '../../system/resources.ts';

/** Twice within half a second. A look takes about 10 µs for each process. */
const LOOK_MS = 200;

export interface WatchedFamily {
  readonly limits: Pick<GroupLimits, 'memory' | 'pids'>;
  /** Pids of all its living processes. */
  members(): Promise<readonly number[]>;
  /** Ends it, for this reason. */
  end(cause: Cause, by: string): void;
}

export class LimitWatch {
  private readonly clock: Clock;
  private readonly families = new Set<WatchedFamily>();
  private cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Returns a function that stops watching. */
  add(family: WatchedFamily): () => void {
    this.families.add(family);
    this.later();
    return () => {
      this.families.delete(family);
      if (this.families.size > 0) return;
      this.cancel?.();
      this.cancel = undefined;
    };
  }

  private later(): void {
    this.cancel ??= this.clock.after(LOOK_MS, () => void this.look());
  }

  private async look(): Promise<void> {
    await Promise.all(Array.from(this.families, (family) => this.lookAt(family)));
    this.cancel = undefined;
    if (this.families.size > 0) this.later();
  }

  private async lookAt(family: WatchedFamily): Promise<void> {
    const pids = await family.members();
    const { memory = Infinity, pids: most = Infinity } = family.limits;
    if (pids.length > most) {
      this.end(family, { kind: 'pids_limit', hits: pids.length - most }, 'process limit');
      return;
    }
    if (memory === Infinity || total(pids.map(residentBytesOf)) <= memory) return;
    const sawBytes = total(await Promise.all(pids.map(proportionalBytes)));
    if (sawBytes <= memory) return;
    this.end(family, { kind: 'memory_limit', victims: pids.length, sawBytes }, 'memory limit');
  }

  private end(family: WatchedFamily, cause: Cause, by: string): void {
    if (this.families.delete(family)) family.end(cause, by);
  }
}

function total(values: readonly number[]): number {
  return values.reduce((all, each) => all + each, 0);
}

/** A page that n processes share counts as 1/n. Read in a thread: it waits while the process maps memory. */
async function proportionalBytes(pid: number): Promise<number> {
  try {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1');
    return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) * 1024;
  } catch {
    // Another user's process.
    return residentBytesOf(pid);
  }
}
