// Ends what is left when a keeper exits. As subreaper it adopts every orphan: each round ends its children and so
// adopts theirs, until none is left, or only those that cannot be ended.

import type { Clock } from '../../base/clock.ts';
import type { RefusedSignal, Survivor } from '../../protocol/host-api.ts';
import { livingBelow, signalPid } from './descendants.ts';
import { loadPosix } from '../../system/posix.ts';
import { commandOf, type ProcessEntry, type ProcessTable } from '../../system/proc-table.ts';

export interface StraysEnd {
  /** How many were alive and have ended. */
  readonly ended: number;
  readonly survivors: readonly (Survivor & { readonly reason?: RefusedSignal['reason'] })[];
}

/** SIGKILL takes moments; a process that waits for a dead disk does not end at all. */
const MOST_MS = 1500;
const LOOK_MS = 20;

interface Stray {
  readonly entry: ProcessEntry;
  readonly refused?: RefusedSignal['reason'];
}

/** Ends every child of this process and everything below. */
export async function endStrays(clock: Clock, table: ProcessTable): Promise<StraysEnd> {
  const posix = loadPosix();
  if (!posix) return { ended: 0, survivors: [] };
  const strays = new Map<string, Stray>();
  const untilUs = clock.nowUs() + MOST_MS * 1000;
  for (;;) {
    const living = livingBelow(
      table.newChildren(() => false),
      table,
    );
    const isDone = living.every((entry) => strays.get(identityOf(entry))?.refused !== undefined);
    if (isDone || clock.nowUs() > untilUs) return endOf(strays, living);
    for (const entry of living) {
      const isSame = (pid: number): boolean =>
        table.readEntry(pid)?.startTicks === entry.startTicks;
      const delivery = signalPid(posix, entry.pid, 'SIGKILL', isSame);
      const isRefused = delivery !== 'sent' && delivery !== 'gone' && delivery !== 'not_ours';
      strays.set(identityOf(entry), { entry, ...(isRefused && { refused: delivery }) });
    }
    await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve));
  }
}

function identityOf({ pid, startTicks }: ProcessEntry): string {
  return `${pid} ${startTicks}`;
}

function endOf(strays: ReadonlyMap<string, Stray>, living: readonly ProcessEntry[]): StraysEnd {
  const survivors = living.map((entry) => {
    const reason = strays.get(identityOf(entry))?.refused;
    return { pid: entry.pid, command: commandOf(entry.pid), ...(reason && { reason }) };
  });
  const alive = new Set(living.map(identityOf));
  const ended = [...strays.keys()].filter((identity) => !alive.has(identity)).length;
  return { ended, survivors };
}
