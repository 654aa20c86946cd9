// Private folders (our own, mode 0700) and the paths of the sockets in them.

import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  statSync,
  type Stats,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { errnoOf } from '../base/disk.ts';
import { HoldfastError } from '../protocol/errors.ts';

/** sun_path holds 108 bytes on Linux and 104 on macOS, with the final NUL. */
export const MAX_SOCKET_PATH_BYTES = 100;
/** Name of the server's socket in its home. */
export const SERVER_SOCKET = 'server.sock';
/** Name of the membership in a fleet. */
export const MEMBERSHIP = 'fleet.json';

/**
 * Path of the socket of this name in a home. The kernel would truncate a path that is too long for a socket. Such a home
 * has its sockets in a private folder under the temporary directory, with names derived from the home's path.
 */
export function socketIn(folder: string, name: string): string {
  const beside = join(folder, name);
  if (Buffer.byteLength(beside) <= MAX_SOCKET_PATH_BYTES) return beside;
  const runtime = join(tmpdir(), `holdfast-${process.getuid?.() ?? 0}`);
  ensurePrivate(runtime);
  const home = createHash('sha256').update(folder).digest('hex').slice(0, 24);
  return join(runtime, `${home}-${name}`);
}

export function ensurePrivate(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') {
      // Node reports ENOENT on a read-only file system.
      const reason =
        whyNotWritable(folder) ?? (error instanceof Error ? error.message : String(error));
      throw new HoldfastError(
        'home_unsafe',
        `The state directory ${folder} cannot be made: ${reason}.`,
        { folder },
      );
    }
  }
  const problem = whyNotPrivate(lstatSync(folder));
  if (problem)
    throw new HoldfastError('home_unsafe', `The state directory ${folder} ${problem}.`, { folder });
}

/** Why no file can be created in a folder, which may not exist yet; undefined if no reason is found. */
export function whyNotWritable(folder: string): string | undefined {
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  if (!statSync(there).isDirectory()) return `${there} is not a directory`;
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EROFS') return `${there} is on a read-only file system`;
    return errno === 'EACCES' ? `this user may not write in ${there}` : `${there}: ${errno ?? ''}`;
  }
}

function whyNotPrivate(stats: Stats): string | undefined {
  if (stats.isSymbolicLink()) return 'is a symbolic link';
  if (!stats.isDirectory()) return 'is not a directory';
  if (process.getuid === undefined) return undefined;
  if (stats.uid !== process.getuid())
    return `belongs to user ${stats.uid}, not to you (${process.getuid()})`;
  const mode = (stats.mode & 0o777).toString(8).padStart(4, '0');
  return (stats.mode & 0o077) === 0
    ? undefined
    : `has mode ${mode}: others could look in; make it 0700`;
}
