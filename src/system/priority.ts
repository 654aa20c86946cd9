// Raises the priority of a keeper or server above that of what it starts. Otherwise, on a busy machine, its callers would
// wait behind the programs of all owners.

import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { loadPosix, type Posix } from './posix.ts';
import { PosixError } from './posix-library.ts';
import { readEntry } from './proc-table.ts';

/** As `nice` counts: about nine times the weight of a usual program. */
const AHEAD = -10;
const USUAL = 0;

/**
 * For all threads that exist; later ones, and all programs that are started, begin at the usual priority. Nothing changes
 * where that is not permitted, or where this program was given another priority. False then. `batch`: it does
 * not interrupt running programs when it is woken. A keeper that did would read a flood in tiny pieces.
 */
export function goAhead({ batch = false }: { readonly batch?: boolean } = {}): boolean {
  const posix = loadPosix();
  const { pid } = process;
  if (!posix || getPriority(pid) !== USUAL || !posix.isUsualPolicy(pid)) return false;
  if (!raise(posix, pid, batch)) return false;
  for (const thread of readdirSync('/proc/self/task').map(Number))
    if (thread !== pid) raise(posix, thread, batch);
  if (readEntry(pid)?.session === pid) raiseSession();
  return true;
}

/** To Linux a thread's number is a process's: only this thread is meant. False when it is not permitted, or has ended. */
function raise(posix: Posix, thread: number, batch: boolean): boolean {
  try {
    // First: between the two a program could be started.
    posix.resetPriorityOnFork(thread, batch);
    setPriority(thread, AHEAD);
    return true;
  } catch (error) {
    if (error instanceof PosixError || (error as NodeJS.ErrnoException).syscall) return false;
    throw error;
  }
}

/** Where the kernel weighs sessions against each other (`sched_autogroup_enabled`), a priority counts only within one. */
function raiseSession(): void {
  try {
    writeFileSync('/proc/self/autogroup', String(AHEAD));
  } catch {
    // Not weighed here, or not permitted: then the threads' own priority is all there is.
  }
}
