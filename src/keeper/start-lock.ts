// The lock of whoever starts the keeper of a home: a crowd of starters starts one, and none while the keeper is being ended.

import { closeSync, constants } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { loadPosix } from '../system/posix.ts';
import { openPrivate, type Home } from './home.ts';

const LOOK_MS = 20;
/** A keeper that is being started is ready by then, also on a busy machine. */
const START_MS = 8000;

/** Answers how to let go of it; undefined while somebody else has it. */
export function tryStartLock({ startLock }: Home): (() => void) | undefined {
  const fd = openPrivate(startLock, constants.O_RDWR);
  if (loadPosix()?.tryLock(fd)) return () => closeSync(fd);
  closeSync(fd);
  return undefined;
}

/** Waits for a start that is under way, though not for ever, and lets nobody start a keeper until this is done. */
export async function withoutStarts<T>(home: Home, act: () => Promise<T>): Promise<T> {
  // Where there is no lock there is no keeper.
  if (!loadPosix()) return act();
  const until = performance.now() + START_MS;
  let release = tryStartLock(home);
  while (!release && performance.now() < until) {
    await pause(LOOK_MS);
    release = tryStartLock(home);
  }
  try {
    return await act();
  } finally {
    release?.();
  }
}
