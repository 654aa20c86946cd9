// The lock of a home's server: one at a time has the socket in the home. Whoever cannot get it can read in it who has it.

import { join } from 'node:path';
import { readEntry } from '../system/proc-table.ts';
import { HoldfastError } from '../protocol/errors.ts';
import {
  lockHolder,
  readNote,
  takeLock,
  type HomeLock,
  type LockNote,
} from '../keeper/home-lock.ts';

/** What the server that takes another's place needs of it. */
export interface LastServer {
  readonly url: string;
  /** Options with which it was started. */
  readonly again: readonly string[];
}

export interface ServerNote extends LockNote, LastServer {
  /** A server that does not serve yet; beside it stands what is kept of the one that died. */
  readonly starting?: LockNote;
}

export interface ServerLock {
  readonly lock: HomeLock<ServerNote>;
  /** The server that had the home before and died; undefined when it ended as it was told to. */
  readonly last: LastServer | undefined;
}

/** What is known of a server that died stays in the lock until another one serves: a start that fails loses nothing. */
export function takeServerLock(folder: string): ServerLock {
  let last: LastServer | undefined;
  const lock = takeLock<ServerNote>(lockPath(folder), (note) => (last = servedBy(note)));
  if (lock) {
    const { pid } = process;
    lock.forget({ ...last, starting: { pid, startTicks: readEntry(pid)?.startTicks ?? 0 } });
    return { lock, last };
  }
  const running = runningServer(folder);
  const where = running ? `: ${running.url}, pid ${running.pid}` : '';
  const problem = `A server is already running for ${folder}${where}.`;
  throw new HoldfastError('server_running', problem, {
    ...(running && { url: running.url, pid: running.pid }),
  });
}

/** The server that has the home's socket now; undefined when none has, or when it is only just starting. */
export function runningServer(folder: string): ServerNote | undefined {
  const holder = lockHolder<ServerNote>(lockPath(folder));
  return holder === 'unknown' ? undefined : holder;
}

/** As `runningServer`, or the one that is only just starting. */
export function presentServer(folder: string): LockNote | undefined {
  const holder = lockHolder<ServerNote>(lockPath(folder));
  return holder === 'unknown' ? readNote<ServerNote>(lockPath(folder))?.starting : holder;
}

/** The server that died without having been told to end; also one that still runs. */
export function lastServer(folder: string): LastServer | undefined {
  const note = readNote<ServerNote>(lockPath(folder));
  return note && servedBy(note);
}

function servedBy({ url, again }: Partial<LastServer>): LastServer | undefined {
  return url === undefined || again === undefined ? undefined : { url, again };
}

function lockPath(folder: string): string {
  return join(folder, 'server.lock');
}
