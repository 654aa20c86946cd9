// The home: the one folder in which a keeper keeps everything. Ours alone, or not used at all.

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, openSync, constants, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { errnoOf } from '../base/disk.ts';
import { HoldfastError } from '../protocol/errors.ts';

export interface Home {
  readonly folder: string;
  readonly socket: string;
  readonly log: string;
  /** Held by the keeper for as long as it lives: the kernel lets go of it when the keeper dies, however it dies. */
  readonly lock: string;
  /** Held by whoever starts a keeper, so that a crowd of starters starts one. */
  readonly startLock: string;
}

/** sun_path holds 108 bytes on Linux and 104 on macOS, the ending NUL included. */
const MAX_SOCKET_PATH_BYTES = 100;

export function openHome(path: string): Home {
  const folder = resolve(path);
  ensurePrivate(folder);
  const beside = join(folder, 'keeper.sock');
  return {
    folder,
    socket: Buffer.byteLength(beside) <= MAX_SOCKET_PATH_BYTES ? beside : shortSocketPath(folder),
    log: join(folder, 'keeper.log'),
    lock: join(folder, 'keeper.lock'),
    startLock: join(folder, 'keeper.start.lock'),
  };
}

/** A private file that others may hold open too: for locks and logs. */
export function openPrivate(path: string, flags: number): number {
  return openSync(path, flags | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
}

/** For a home whose path is too long for a socket: a folder of ours with a name made from that path. */
function shortSocketPath(folder: string): string {
  const runtime = join(tmpdir(), `holdfast-${process.getuid?.() ?? 0}`);
  ensurePrivate(runtime);
  return join(runtime, `${createHash('sha256').update(folder).digest('hex').slice(0, 24)}.sock`);
}

function ensurePrivate(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') {
      const reason = error instanceof Error ? error.message : String(error);
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
