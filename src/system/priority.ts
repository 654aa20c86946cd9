// Who goes first on the processor. A server is raised above what the keeper starts: otherwise, on a busy machine, its
// callers would wait behind the programs of all owners. A program that gives way is lowered. The keeper has the usual
// priority (ADR 42).

import { writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { loadPosix, type Posix } from './posix.ts';
import { PosixError } from './posix-library.ts';
import { readEntry } from './proc-table.ts';

/** As `nice` counts: about nine times the weight of a usual program. */
const AHEAD = -10;
const USUAL = 0;
/** About a ninth of the weight of a usual program. */
const BEHIND = 10;

/**
 * For the main thread. Others, as those that collect the garbage of every worker, and all programs that are started, keep
 * the usual priority. Nothing changes where that is not permitted, or where this program was given another priority. False
 * then.
 */
export function goAhead(): boolean {
  const posix = loadPosix();
  const { pid } = process;
  if (!posix || getPriority(pid) !== USUAL || !posix.isUsualPolicy(pid)) return false;
  if (!raise(posix, pid)) return false;
  if (readEntry(pid)?.session === pid) weighSession(pid, AHEAD);
  return true;
}

/** A program that leads its session and group, with all that it has started; not below where this program itself is. */
export function giveWay(leader: number): void {
  const nice = Math.max(BEHIND, getPriority());
  try {
    loadPosix()?.setGroupPriority(leader, nice);
  } catch (error) {
    // The program has ended, or runs as another user.
    if (!(error instanceof PosixError)) throw error;
  }
  weighSession(leader, nice);
}

/** To Linux a thread's number is a process's: only this thread is meant. False when it is not permitted, or has ended. */
function raise(posix: Posix, thread: number): boolean {
  try {
    // First: between the two a program could be started.
    posix.resetPriorityOnFork(thread);
    setPriority(thread, AHEAD);
    return true;
  } catch (error) {
    if (error instanceof PosixError || (error as NodeJS.ErrnoException).syscall) return false;
    throw error;
  }
}

/** Where the kernel weighs sessions against each other (`sched_autogroup_enabled`), a priority counts only within one. */
function weighSession(leader: number, nice: number): void {
  try {
    writeFileSync(`/proc/${leader}/autogroup`, String(nice));
  } catch {
    // Not weighed here, not permitted, or too many changes at once: then the threads' own priority is all there is.
  }
}
