// A place: something on the disk that is held open by a descriptor, so that what is looked at is what is then used,
// whatever becomes of its name meanwhile. Names inside a held folder are reached through /proc/self/fd, which is what
// openat does for programs that can call it. The kernel tells the real path of what is held; no name is resolved twice.

import { constants } from 'node:fs';
import { lstat, mkdir, open, readlink, type FileHandle } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { errnoOf } from '../../../base/disk.ts';
import { refused, SystemError } from './error.ts';
import type { Reach } from './reach.ts';
import { join, nameOf, nativeText, parentOf, pathBytes, type BytePath } from './uri.ts';

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY } = constants;
/** Holds a place without opening it: a FIFO is not waited for, a device is not woken. The same on all architectures of Linux. */
const O_PATH = 0o10000000;
/** As many links as the kernel follows in one name. */
const MAX_LINKS = 40;

export interface Place {
  readonly handle: FileHandle;
  /** Where it is, without links. */
  readonly real: BytePath;
  readonly stats: Stats;
}

export interface Way {
  readonly reach: Reach;
  /** False: a link anywhere on the way is an error. */
  readonly follow: boolean;
}

/** Holds what the path names and closes it again, whatever `use` does. */
export async function withPlace<T>(
  path: BytePath,
  way: Way,
  use: (place: Place) => Promise<T>,
): Promise<T> {
  way.reach.checkName(path);
  const handle = await open(pathBytes(path), O_PATH | (way.follow ? 0 : O_NOFOLLOW));
  try {
    const place = { handle, real: await realPath(handle), stats: await handle.stat() };
    if (!way.follow && place.real !== path) throw new SystemError('ENOTDIR');
    way.reach.check(place.real, 'read');
    await way.reach.checkHeld(handle, place.stats);
    return await use(place);
  } finally {
    await handle.close();
  }
}

/** The same for a folder. Reading it is not asked for: whoever creates in it asks for what is created. */
export async function withFolder<T>(
  path: BytePath,
  { reach, follow }: Way,
  use: (folder: Pick<Place, 'handle' | 'real'>) => Promise<T>,
): Promise<T> {
  reach.checkName(path);
  const flags = O_PATH | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW);
  const handle = await open(pathBytes(path), flags);
  try {
    const real = await realPath(handle);
    if (!follow && real !== path) throw new SystemError('ENOTDIR');
    await reach.checkHeld(handle);
    return await use({ handle, real });
  } finally {
    await handle.close();
  }
}

/** A name inside a held folder, for a system call; without a name the held thing itself. */
export function inside({ fd }: FileHandle, name?: string): Buffer {
  return pathBytes(name === undefined ? `/proc/self/fd/${fd}` : `/proc/self/fd/${fd}/${name}`);
}

export async function realPath(handle: FileHandle): Promise<BytePath> {
  const real = (await readlink(inside(handle), 'buffer')).toString('latin1');
  // A pipe or a socket by way of /proc/self/fd has no path.
  if (!real.startsWith('/')) throw new SystemError('EACCES');
  return real;
}

/** For reading; only regular files, so that nothing waits and no device acts. */
export async function openToRead(path: BytePath, way: Way): Promise<FileHandle> {
  return withPlace(path, way, async ({ handle, stats }) => {
    if (stats.isSymbolicLink()) throw new SystemError('ELOOP');
    if (!stats.isFile()) throw notAFile(path, way);
    return open(inside(handle), O_RDONLY);
  });
}

/**
 * For writing, created if need be, not truncated yet. Links at the end are followed by us, one at a time, each with its
 * folder held: so nothing is created where the path only seemed to lead.
 */
export async function openToWrite(path: BytePath, way: Way): Promise<FileHandle> {
  let target = path;
  for (let links = 0; links <= MAX_LINKS; links += 1) {
    const next = await withFolder(parentOf(target), way, (folder) =>
      openOrLink(folder, nameOf(target), way),
    );
    if (typeof next !== 'string') return next;
    target = next;
  }
  throw new SystemError('ELOOP');
}

/** The opened file, or the path that a link in its place leads to. */
async function openOrLink(
  { handle, real }: Pick<Place, 'handle' | 'real'>,
  name: string,
  { reach, follow }: Way,
): Promise<FileHandle | BytePath> {
  if (name === '' || name === '.' || name === '..') throw new SystemError('EISDIR');
  reach.check(join(real, name), 'write');
  const flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  let opened: FileHandle;
  try {
    opened = await open(inside(handle, name), flags, 0o666);
  } catch (error) {
    if (errnoOf(error) !== 'ELOOP' || !follow) throw error;
    const link = (await readlink(inside(handle, name), 'buffer')).toString('latin1');
    return link.startsWith('/') ? link : join(real, link);
  }
  try {
    reach.check(await realPath(opened), 'write');
    const stats = await opened.stat();
    await reach.checkHeld(opened, stats);
    if (!stats.isFile()) throw notAFile(join(real, name), { follow });
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** A file that was not there before. */
export function createFile(folder: FileHandle, name: string): Promise<FileHandle> {
  return open(inside(folder, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

export async function makeFolder(path: BytePath, recursive: boolean, way: Way): Promise<void> {
  if (recursive && (await isFolder(path, way))) return;
  const make = (): Promise<void> =>
    withFolder(parentOf(path), way, async ({ handle, real }) => {
      way.reach.check(join(real, nameOf(path)), 'write');
      await mkdir(inside(handle, nameOf(path)));
    });
  try {
    await make();
  } catch (error) {
    const code = errnoOf(error);
    if (!recursive) throw error;
    if (code === 'EEXIST') {
      // Somebody else may have made it at the same moment, which is as good.
      if (await isFolder(path, way)) return;
      throw way.follow ? error : new SystemError('ENOTDIR');
    }
    if (code !== 'ENOENT' || path === '/') throw error;
    await makeFolder(parentOf(path), true, way);
    await make();
  }
}

async function isFolder(path: BytePath, way: Way): Promise<boolean> {
  try {
    return await withPlace(path, way, async ({ stats }) => stats.isDirectory());
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return false;
    throw error;
  }
}

export interface Metadata {
  readonly isDirectory: boolean;
  readonly isFile: boolean;
  readonly isSymlink: boolean;
  readonly size: number;
  readonly createdAtMs: number;
  readonly modifiedAtMs: number;
}

export async function metadataOf(path: BytePath, way: Way): Promise<Metadata> {
  return withPlace(path, way, async ({ stats }) => {
    if (stats.isSymbolicLink()) throw refused('path contains a symbolic link');
    const isSymlink = way.follow && (await lstat(pathBytes(path))).isSymbolicLink();
    return {
      isDirectory: stats.isDirectory(),
      isFile: stats.isFile(),
      isSymlink,
      size: stats.size,
      createdAtMs: Math.max(0, Math.floor(stats.birthtimeMs)),
      modifiedAtMs: Math.floor(stats.mtimeMs),
    };
  });
}

function notAFile(path: BytePath, { follow }: Pick<Way, 'follow'>): Error {
  return refused(
    follow ? `path \`${nativeText(path)}\` is not a file` : 'path is not a regular file',
  );
}
