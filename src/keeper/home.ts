// The home: the one folder in which a keeper keeps everything. Ours alone, or not used at all.

import { openSync, constants } from 'node:fs';
import { join, resolve } from 'node:path';
import { ensurePrivate, SERVER_SOCKET, socketIn } from '../system/private-folder.ts';

/** In the home. */
export const STATE_LOG = 'state.log';

export interface Home {
  readonly folder: string;
  readonly socket: string;
  /** Of the server, unless it was given another: whoever can enter its folder needs no token. */
  readonly serverSocket: string;
  readonly log: string;
  /** Changes of state; an older part is beside it, with ".1" behind the name. */
  readonly stateLog: string;
  /** Held by the keeper for as long as it lives: the kernel lets go of it when the keeper dies, however it dies. */
  readonly lock: string;
  /** Held by whoever starts a keeper, so that a crowd of starters starts one. */
  readonly startLock: string;
}

export function openHome(path: string): Home {
  const folder = resolve(path);
  ensurePrivate(folder);
  return {
    folder,
    socket: socketIn(folder, 'keeper.sock'),
    serverSocket: socketIn(folder, SERVER_SOCKET),
    log: join(folder, 'keeper.log'),
    stateLog: join(folder, STATE_LOG),
    lock: join(folder, 'keeper.lock'),
    startLock: join(folder, 'keeper.start.lock'),
  };
}

/** A private file that others may hold open too: for locks and logs. */
export function openPrivate(path: string, flags: number): number {
  return openSync(path, flags | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
}
