// Signals a server or keeper that is not our child, and waits for its end.

import { readdirSync } from 'node:fs';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { readEntry } from '../../system/proc-table.ts';
import type { LockNote } from '../../keeper/home-lock.ts';

const LOOK_MS = 20;

/**
 * Signals the holder of a lock, unless it has ended meanwhile. A holder in another container is refused: its pid means
 * another process here.
 */
export function signalHolder(
  { pid, startTicks }: LockNote,
  who: string,
  holder: () => LockNote | 'unknown' | undefined,
  ...signals: NodeJS.Signals[]
): void {
  if (startTicks !== undefined && readEntry(pid)?.startTicks !== startTicks) {
    const now = holder();
    if (now === undefined || now === 'unknown' || now.pid !== pid) return;
    const problem = `${who} runs in another container, as its process ${pid}: end it there.`;
    throw new HoldfastError('unsupported', problem);
  }
  for (const signal of signals) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (errnoOf(error) !== 'ESRCH') throw error;
    }
  }
}

/** Polls, because the process is not our child. False when it is still there after `ms`. */
export async function endsWithin(pid: number, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  while (isThere(pid)) {
    if (performance.now() > until) return false;
    await new Promise((again) => setTimeout(again, LOOK_MS));
  }
  return true;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
    throw error;
  }
  // Its parent may reap it only after this command has ended.
  return readEntry(pid)?.state !== 'Z' || hasThreads(pid);
}

/** The first thread of a killed process may die before the others, which still hold its locks and ports. */
function hasThreads(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).length > 1;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return false;
    throw error;
  }
}
