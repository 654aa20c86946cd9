// The lock of a home's server: one at a time has the socket in the home. Whoever cannot get it can read in it who has it.
// The kernel frees the lock of a server that died, however it died.

import { closeSync, constants, ftruncateSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../protocol/errors.ts';
import { loadPosix } from '../host/posix.ts';
import { openPrivate } from '../keeper/home.ts';

export interface ServerNote {
  readonly pid: number;
  /** When that process began, as the kernel counts: elsewhere the number may be somebody else's. */
  readonly startTicks?: number;
  readonly url: string;
  /** Options with which it was started, for the one that takes its place. */
  readonly again: readonly string[];
}

export interface ServerLock {
  /** Says who has it. */
  note(server: ServerNote): void;
  release(): void;
}

export function takeServerLock(folder: string): ServerLock {
  const lock = openLock(folder);
  if (loadPosix()?.tryLock(lock) === false) {
    closeSync(lock);
    const problem = `A server already serves ${folder}; use it, or give this one a socket of its own.`;
    throw new HoldfastError('server_running', problem);
  }
  return {
    note(server) {
      ftruncateSync(lock, 0);
      writeSync(lock, `${JSON.stringify(server)}\n`, 0);
    },
    release: () => closeSync(lock),
  };
}

/** The server that has the home's socket now; undefined when none has, or when it is only just starting. */
export function runningServer(folder: string): ServerNote | undefined {
  const lock = openLock(folder);
  try {
    if (loadPosix()?.tryLock(lock) !== false) return undefined;
    const text = readFileSync(lock, 'utf8');
    return text === '' ? undefined : (JSON.parse(text) as ServerNote);
  } finally {
    closeSync(lock);
  }
}

function openLock(folder: string): number {
  return openPrivate(join(folder, 'server.lock'), constants.O_RDWR);
}
