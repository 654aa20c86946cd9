// The lock of a home's server: one server at a time has the socket in the home. The lock file says which.

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

/** What a successor needs to know of a server. */
export interface LastServer {
  readonly url: string;
  /** The options it was started with. */
  readonly again: readonly string[];
  /** Its port was on the command line: it goes before the port of the settings. */
  readonly portIsTyped?: boolean;
}

export interface ServerNote extends LockNote, LastServer {
  /** Absent from earlier servers. */
  readonly version?: string;
  readonly startedAtMs?: number;
  /** A server that is still starting. `url` and `again` then belong to the one that died. */
  readonly starting?: LockNote;
}

export interface ServerLock {
  readonly lock: HomeLock<ServerNote>;
  /** The server that had the home before and died; undefined if it was shut down. */
  readonly last: LastServer | undefined;
}

/** The lock file keeps the note of a server that died until another one serves, so a failed start loses nothing. */
export function takeServerLock(folder: string): ServerLock {
  let last: LastServer | undefined;
  const lock = takeLock<ServerNote>(lockPath(folder), (note) => (last = serverOf(note)));
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

/** The server that has the home's socket now; undefined if there is none, or if it is still starting. */
export function runningServer(folder: string): ServerNote | undefined {
  const holder = lockHolder<ServerNote>(lockPath(folder));
  return holder === 'unknown' ? undefined : holder;
}

/** Like `runningServer`, but includes one that is still starting. */
export function presentServer(folder: string): LockNote | undefined {
  const holder = lockHolder<ServerNote>(lockPath(folder));
  return holder === 'unknown' ? readNote<ServerNote>(lockPath(folder))?.starting : holder;
}

/** The server that died without a shutdown, or that still runs. */
export function lastServer(folder: string): LastServer | undefined {
  const note = readNote<ServerNote>(lockPath(folder));
  return note && serverOf(note);
}

function serverOf({
  url,
  again,
  portIsTyped = false,
}: Partial<LastServer>): LastServer | undefined {
  return url === undefined || again === undefined ? undefined : { url, again, portIsTyped };
}

function lockPath(folder: string): string {
  return join(folder, 'server.lock');
}
