// The lock of the program that starts the keeper of a home: concurrent programs start only one, and none while the keeper
// is being ended.

import { closeSync, constants } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { loadPosix } from '../system/posix.ts';
import { openPrivate, type Home } from './home.ts';

const RETRY_MS = 20;
/** By then a keeper that is being started is ready, even on a busy machine. */
const START_MS = 8000;

/** Returns a function that releases it; undefined while another program has it. */
export function tryStartLock({ startLock }: Home): (() => void) | undefined {
  const fd = openPrivate(startLock, constants.O_RDWR);
  if (loadPosix()?.tryLock(fd)) return () => closeSync(fd);
  closeSync(fd);
  return undefined;
}

/** Waits up to START_MS for a start in progress, then runs `act` while no other program can start a keeper. */
export async function withoutStarts<T>(home: Home, act: () => Promise<T>): Promise<T> {
  // Without system calls there are neither locks nor keepers.
  if (!loadPosix()) return act();
  const until = performance.now() + START_MS;
  let release = tryStartLock(home);
  while (!release && performance.now() < until) {
    await pause(RETRY_MS);
    release = tryStartLock(home);
  }
  try {
    return await act();
  } finally {
    release?.();
  }
}
