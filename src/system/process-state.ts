// What the kernel says that a process of this machine is doing.

import { readFileSync } from 'node:fs';

/** By SIGSTOP or a debugger. False where that cannot be known. */
export function isStopped(pid: number | undefined): boolean {
  const state = pid === undefined ? undefined : stateOf(pid);
  return state === 'T' || state === 't';
}

/** Why a process that stands still does, in words for a person; undefined where the kernel does not say. */
export function whyStill(pid: number | undefined): string | undefined {
  if (pid === undefined) return undefined;
  if (isStopped(pid)) return `it is stopped; "kill -CONT ${pid}" continues it`;
  return stateOf(pid) === 'D' ? 'it waits for a disk or a mount that does not answer' : undefined;
}

/** One letter, as proc(5) has them. */
function stateOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the name in parentheses, and a name may contain both blanks and parentheses.
    return text[text.lastIndexOf(')') + 2];
  } catch {
    // It has ended, or there is no /proc.
    return undefined;
  }
}
