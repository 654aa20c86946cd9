// The state of a process on this machine, from the kernel.

import { readEntry } from './proc-table.ts';

/** Stopped by SIGSTOP or a debugger. False where that cannot be known. */
export function isStopped(pid: number | undefined): boolean {
  const state = pid === undefined ? undefined : stateOf(pid);
  return state === 'T' || state === 't';
}

/** The reason, for people, why a process does not answer; undefined where the kernel shows none. */
export function whyStill(pid: number | undefined): string | undefined {
  if (pid === undefined) return undefined;
  if (isStopped(pid)) return `it is stopped; "kill -CONT ${pid}" continues it`;
  return stateOf(pid) === 'D' ? 'it waits for a disk or a mount that does not answer' : undefined;
}

/** One letter of proc(5); undefined if the process has ended or cannot be read. */
function stateOf(pid: number): string | undefined {
  try {
    return readEntry(pid)?.state;
  } catch {
    return undefined;
  }
}
