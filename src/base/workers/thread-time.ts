// The processor time of a thread.

import { readFileSync, readlinkSync } from 'node:fs';

/** Kernel id of the calling thread; 0 where /proc does not show it. */
export function threadId(): number {
  try {
    // "<process>/task/<thread>"
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}

/** Nanoseconds that a thread of this program has run; undefined if it has ended or /proc does not show it. */
export function threadTimeNs(thread: number): bigint | undefined {
  try {
    const [time] = readFileSync(`/proc/self/task/${thread}/schedstat`, 'latin1').split(' ', 1);
    return BigInt(time ?? '');
  } catch {
    return undefined;
  }
}
