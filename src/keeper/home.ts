// The home: the private state folder of a keeper.

import { openSync, constants } from 'node:fs';
import { join, resolve } from 'node:path';
import { ensurePrivate, MEMBERSHIP, SERVER_SOCKET, socketIn } from '../system/private-folder.ts';

export interface Home {
  readonly folder: string;
  readonly socket: string;
  /** The default socket of the server. Access to its folder replaces a token. */
  readonly serverSocket: string;
  /** Of the keeper; a rotated file has ".1" appended. */
  readonly log: string;
  readonly serverLog: string;
  /** Held by the keeper as long as it lives. */
  readonly lock: string;
  /** Held by the server. Its note stays when the server dies. */
  readonly serverLock: string;
  /** There is one while the home belongs to a fleet. */
  readonly membership: string;
  /** Held by a program that starts a keeper, so that concurrent programs start only one. */
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
    serverLog: join(folder, 'server.log'),
    lock: join(folder, 'keeper.lock'),
    serverLock: join(folder, 'server.lock'),
    membership: join(folder, MEMBERSHIP),
    startLock: join(folder, 'keeper.start.lock'),
  };
}

/** Opens or creates a private file, for locks and logs. */
export function openPrivate(path: string, flags: number): number {
  return openSync(path, flags | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
}
