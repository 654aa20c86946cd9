// A server or keeper of this machine that is not our child: whether it is the one that was meant, and its end.

import { readdirSync } from 'node:fs';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { readEntry } from '../../system/proc-table.ts';
import type { LockNote } from '../../keeper/home-lock.ts';

const LOOK_MS = 20;

/**
 * Sends signals to whoever has a lock, unless it has ended since that was looked up. In another container the number means
 * somebody else: that is refused.
 */
export function tellHolder(
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

/** Its end is not told to us: it is looked for. False when it is still there after so long. */
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
  // Whoever started it may be waiting for us before he takes note of its end.
  return readEntry(pid)?.state !== 'Z' || hasThreads(pid);
}

/** Of a killed process the first thread may be dead before the others: until then its locks and ports are taken. */
function hasThreads(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).length > 1;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ESRCH') return false;
    throw error;
  }
}
