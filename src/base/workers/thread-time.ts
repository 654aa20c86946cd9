// The processor time of a thread: how long it has really worked, whatever else the machine was busy with meanwhile.

import { readFileSync, readlinkSync } from 'node:fs';

/** The kernel's number for the calling thread; 0 where the kernel does not tell. */
export function threadId(): number {
  try {
    // "<process>/task/<thread>"
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}

/** Nanoseconds that a thread of this program has run; undefined when the thread is gone or the kernel does not tell. */
export function threadTimeNs(thread: number): bigint | undefined {
  try {
    const [time] = readFileSync(`/proc/self/task/${thread}/schedstat`, 'latin1').split(' ', 1);
    return BigInt(time ?? '');
  } catch {
    return undefined;
  }
}
