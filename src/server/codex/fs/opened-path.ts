// Opens paths by descriptor, so that what was checked is what is used, whatever happens to the name meanwhile. Names
// inside an open folder are reached through /proc/self/fd, which works like openat. The kernel gives the real path of a
// descriptor, so no name is resolved twice.

import { constants } from 'node:fs';
import { lstat, mkdir, open, readlink, type FileHandle } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { errnoOf } from '../../../base/disk.ts';
import { answeringMounts } from './answering-mounts.ts';
import { refused, SystemError } from './error.ts';
import type { AccessPolicy } from './access-policy.ts';
import { join, nameOf, nativeText, parentOf, pathBytes, type BytePath } from './uri.ts';

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY } = constants;
/**
 * Refers to a path without opening it: a FIFO does not block, a device is not touched. The same value on all Linux
 * architectures.
 */
const O_PATH = 0o10000000;
/** As many links as the kernel follows in one path. */
const MAX_LINKS = 40;

export interface OpenedPath {
  readonly handle: FileHandle;
  /** The real path, without links. */
  readonly real: BytePath;
  readonly stats: Stats;
}

export interface PathOptions {
  readonly access: AccessPolicy;
  /** False: a link anywhere in the path is an error. */
  readonly follow: boolean;
}

/** Opens the path for `use` and always closes it. */
export async function withOpened<T>(
  path: BytePath,
  options: PathOptions,
  use: (place: OpenedPath) => Promise<T>,
): Promise<T> {
  options.access.checkName(path);
  await answeringMounts.check(path);
  const handle = await open(pathBytes(path), O_PATH | (options.follow ? 0 : O_NOFOLLOW));
  try {
    const place = { handle, real: await realPath(handle), stats: await handle.stat() };
    if (!options.follow && place.real !== path) throw new SystemError('ENOTDIR');
    options.access.check(place.real, 'read');
    await options.access.checkOpened(handle, place.stats);
    return await use(place);
  } finally {
    await handle.close();
  }
}

/** The same for a folder. Read access is not checked: a caller that creates something checks that path. */
export async function withFolder<T>(
  path: BytePath,
  { access, follow }: PathOptions,
  use: (folder: Pick<OpenedPath, 'handle' | 'real'>) => Promise<T>,
): Promise<T> {
  access.checkName(path);
  await answeringMounts.check(path);
  const flags = O_PATH | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW);
  const handle = await open(pathBytes(path), flags);
  try {
    const real = await realPath(handle);
    if (!follow && real !== path) throw new SystemError('ENOTDIR');
    await access.checkOpened(handle);
    return await use({ handle, real });
  } finally {
    await handle.close();
  }
}

/** A name inside an open folder, for a system call; without a name the open file itself. */
export function inside({ fd }: FileHandle, name?: string): Buffer {
  return pathBytes(name === undefined ? `/proc/self/fd/${fd}` : `/proc/self/fd/${fd}/${name}`);
}

export async function realPath(handle: FileHandle): Promise<BytePath> {
  const real = (await readlink(inside(handle), 'buffer')).toString('latin1');
  // A pipe or a socket under /proc/self/fd has no path.
  if (!real.startsWith('/')) throw new SystemError('EACCES');
  return real;
}

/** Only regular files, so that nothing blocks and no device is touched. */
export async function openToRead(path: BytePath, options: PathOptions): Promise<FileHandle> {
  return withOpened(path, options, async ({ handle, stats }) => {
    if (stats.isSymbolicLink()) throw new SystemError('ELOOP');
    if (!stats.isFile()) throw notAFile(path, options);
    return open(inside(handle), O_RDONLY);
  });
}

/**
 * Created if necessary, not truncated yet. Links at the end are followed one at a time, each with its folder open, so
 * that nothing is created outside the checked path.
 */
export async function openToWrite(path: BytePath, options: PathOptions): Promise<FileHandle> {
  let target = path;
  for (let links = 0; links <= MAX_LINKS; links += 1) {
    const next = await withFolder(parentOf(target), options, (folder) =>
      openOrLink(folder, nameOf(target), options),
    );
    if (typeof next !== 'string') return next;
    target = next;
  }
  throw new SystemError('ELOOP');
}

/** The opened file, or the target if the name is a link. */
async function openOrLink(
  { handle, real }: Pick<OpenedPath, 'handle' | 'real'>,
  name: string,
  { access, follow }: PathOptions,
): Promise<FileHandle | BytePath> {
  if (name === '' || name === '.' || name === '..') throw new SystemError('EISDIR');
  access.check(join(real, name), 'write');
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
    access.check(await realPath(opened), 'write');
    const stats = await opened.stat();
    await access.checkOpened(opened, stats);
    if (!stats.isFile()) throw notAFile(join(real, name), { follow });
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** A file that did not exist before. */
export function createFile(folder: FileHandle, name: string): Promise<FileHandle> {
  return open(inside(folder, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
}

export async function makeFolder(
  path: BytePath,
  recursive: boolean,
  options: PathOptions,
): Promise<void> {
  if (recursive && (await isFolder(path, options))) return;
  const make = (): Promise<void> =>
    withFolder(parentOf(path), options, async ({ handle, real }) => {
      options.access.check(join(real, nameOf(path)), 'write');
      await mkdir(inside(handle, nameOf(path)));
    });
  try {
    await make();
  } catch (error) {
    const code = errnoOf(error);
    if (!recursive) throw error;
    if (code === 'EEXIST') {
      // Another program may have created it at the same moment, which is fine.
      if (await isFolder(path, options)) return;
      throw options.follow ? error : new SystemError('ENOTDIR');
    }
    if (code !== 'ENOENT' || path === '/') throw error;
    await makeFolder(parentOf(path), true, options);
    await make();
  }
}

async function isFolder(path: BytePath, options: PathOptions): Promise<boolean> {
  try {
    return await withOpened(path, options, async ({ stats }) => stats.isDirectory());
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

export async function metadataOf(path: BytePath, options: PathOptions): Promise<Metadata> {
  return withOpened(path, options, async ({ stats }) => {
    if (stats.isSymbolicLink()) throw refused('path contains a symbolic link');
    const isSymlink = options.follow && (await lstat(pathBytes(path))).isSymbolicLink();
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

function notAFile(path: BytePath, { follow }: Pick<PathOptions, 'follow'>): Error {
  return refused(
    follow ? `path \`${nativeText(path)}\` is not a file` : 'path is not a regular file',
  );
}
