// Whole trees: listing, walking, removing and copying. Every folder is held while it is worked in and its entries are
// reached through it, so that a folder replaced by a link in the middle of the work leads nowhere else.

import { constants } from 'node:fs';
import type { Dirent } from 'node:fs';
import {
  copyFile,
  mkdir,
  lstat,
  open,
  opendir,
  readlink,
  rmdir,
  symlink,
  unlink,
  type FileHandle,
} from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { refused, SystemError } from './error.ts';
import {
  createFile,
  inside,
  openToWrite,
  realPath,
  withFolder,
  withPlace,
  type Place,
  type Way,
} from './place.ts';
import { isWithin, join, nameOf, parentOf, type BytePath } from './uri.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** A held folder per level: no path that the kernel takes is deeper, and the descriptors last. */
const MAX_LEVELS = 1000;
const MAX_LISTED = 50_000;

export interface Listed {
  readonly name: string;
  readonly entry: Dirent;
}

/** The names in a held folder, sorted; at most one more than `most`. */
export async function namesIn(folder: FileHandle, most: number): Promise<Listed[]> {
  const names: Listed[] = [];
  // Buffers, because a name need not be UTF-8; the types of this version do not know it.
  const options = { encoding: 'buffer' as BufferEncoding, bufferSize: 256 };
  for await (const entry of await opendir(inside(folder), options)) {
    names.push({ name: (entry.name as unknown as Buffer).toString('latin1'), entry });
    if (names.length > most) break;
  }
  return names.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export interface DirectoryEntry {
  readonly fileName: string;
  readonly isDirectory: boolean;
  readonly isFile: boolean;
}

export async function listFolder(path: BytePath, way: Way): Promise<DirectoryEntry[]> {
  return withPlace(path, way, async ({ handle, real, stats }) => {
    if (!stats.isDirectory()) throw new SystemError('ENOTDIR');
    const names = await namesIn(handle, MAX_LISTED);
    if (names.length > MAX_LISTED)
      throw new RpcError(
        rpcCodes.failed,
        `fs/readDirectory returned ${names.length} entries; limit is ${MAX_LISTED}`,
      );
    const entries: DirectoryEntry[] = [];
    for (const { name, entry } of names) {
      const kind = entry.isSymbolicLink() ? await targetKind(join(real, name), way) : entry;
      if (!kind) continue;
      entries.push({
        fileName: Buffer.from(name, 'latin1').toString('utf8'),
        isDirectory: kind.isDirectory(),
        isFile: kind.isFile(),
      });
    }
    return entries;
  });
}

type Kind = Pick<Dirent, 'isDirectory' | 'isFile'>;

/** Undefined for a link that leads nowhere, or out of reach. */
async function targetKind(path: BytePath, { reach }: Way): Promise<Kind | undefined> {
  try {
    return await withPlace(path, { reach, follow: true }, async ({ stats }) => stats);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

export interface RemoveOptions {
  readonly recursive: boolean;
  /** What is not there counts as removed. */
  readonly force: boolean;
}

/** A link is removed itself, never what it leads to. */
export async function removeTree(path: BytePath, options: RemoveOptions, way: Way): Promise<void> {
  const name = nameOf(path);
  if (name === '') throw new SystemError('EBUSY');
  try {
    await withFolder(parentOf(path), way, async ({ handle, real }) => {
      const target = join(real, name);
      way.reach.check(target, 'read');
      // What is missing is told before what may not be written.
      await lstat(inside(handle, name));
      if (options.recursive) {
        way.reach.checkTree(target, 'write');
        return removeAll(handle, name, { way, level: 0 });
      }
      way.reach.check(target, 'write');
      return removeOne(handle, name);
    });
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || !options.force) throw error;
  }
}

async function removeOne(folder: FileHandle, name: string): Promise<void> {
  const path = inside(folder, name);
  if ((await lstat(path)).isDirectory()) await rmdir(path);
  else await unlink(path);
}

async function removeAll(
  folder: FileHandle,
  name: string,
  { way, level }: { way: Way; level: number },
): Promise<void> {
  if (level > MAX_LEVELS) throw new SystemError('ENAMETOOLONG');
  const path = inside(folder, name);
  if (!(await lstat(path)).isDirectory()) return unlink(path);
  await withHeld(folder, name, way, async (held) => {
    for (;;) {
      // In portions: a folder may hold more names than should be in memory at once.
      const names = await namesIn(held, 1000);
      if (names.length === 0) return;
      for (const { name: inner } of names) await removeAll(held, inner, { way, level: level + 1 });
    }
  });
  await rmdir(path);
}

/** A folder inside a held one, held in its turn; fails when a link stands there now, or something hidden is mounted. */
async function withHeld<T>(
  folder: FileHandle,
  name: string,
  { reach }: Way,
  use: (held: FileHandle) => Promise<T>,
): Promise<T> {
  const held = await open(inside(folder, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    await reach.checkHeld(held);
    return await use(held);
  } finally {
    await held.close();
  }
}

/** Links are copied as links, pipes and devices left out of a tree. What is at the destination already is not merged. */
export async function copyTree(
  from: BytePath,
  to: BytePath,
  recursive: boolean,
  way: Way,
): Promise<void> {
  await withFolder(parentOf(from), way, async (source) => {
    const real = join(source.real, nameOf(from));
    // The root has no name inside a parent.
    if (nameOf(from) === '') throw refused(INTO_ITSELF);
    const stats = await lstat(inside(source.handle, nameOf(from)));
    if (stats.isFile()) return copyOver(source, nameOf(from), to, way);
    way.reach.checkTree(real, 'read');
    if (stats.isDirectory() && !recursive)
      throw refused('fs/copy requires recursive: true when sourcePath is a directory');
    if (!stats.isDirectory() && !stats.isSymbolicLink())
      throw refused('fs/copy only supports regular files, directories, and symlinks');
    await withFolder(parentOf(to), way, async (target) => {
      const end = join(target.real, nameOf(to));
      if (stats.isDirectory() && isWithin(real, end)) throw refused(INTO_ITSELF);
      way.reach.check(end, 'write');
      await copyEntry(
        { folder: source.handle, name: nameOf(from) },
        { folder: target.handle, name: nameOf(to) },
        { way, level: 0 },
      );
    });
  });
}

const INTO_ITSELF = 'fs/copy cannot copy a directory to itself or one of its descendants';

/** One file onto what is there, through links, as writing does. */
async function copyOver(
  source: Pick<Place, 'handle' | 'real'>,
  name: string,
  to: BytePath,
  way: Way,
): Promise<void> {
  const file = await openRegular({ folder: source.handle, name });
  try {
    way.reach.check(await realPath(file), 'read');
    await way.reach.checkHeld(file, await file.stat());
    const target = await openToWrite(to, way);
    try {
      // The kernel copies; a file onto itself is left as it is.
      await copyFile(inside(file), inside(target));
    } finally {
      await target.close();
    }
  } finally {
    await file.close();
  }
}

interface Spot {
  readonly folder: FileHandle;
  readonly name: string;
}

async function copyEntry(
  from: Spot,
  to: Spot,
  { way, level }: { way: Way; level: number },
): Promise<void> {
  if (level > MAX_LEVELS) throw new SystemError('ENAMETOOLONG');
  const stats = await lstat(inside(from.folder, from.name));
  if (stats.isSymbolicLink()) {
    const target = await readlink(inside(from.folder, from.name), 'buffer');
    return symlink(target, inside(to.folder, to.name));
  }
  if (stats.isFile()) return copyNew(from, to, way);
  if (!stats.isDirectory()) return undefined;
  await mkdir(inside(to.folder, to.name), 0o700);
  await withHeld(from.folder, from.name, way, (source) =>
    withHeld(to.folder, to.name, way, async (target) => {
      way.reach.check(await realPath(source), 'read');
      for (const { name } of await namesIn(source, Number.MAX_SAFE_INTEGER))
        await copyEntry(
          { folder: source, name },
          { folder: target, name },
          { way, level: level + 1 },
        );
      // Last: a folder may well be one that its own copy could not be filled with.
      await target.chmod(stats.mode & 0o777);
    }),
  );
}

async function copyNew(from: Spot, to: Spot, { reach }: Way): Promise<void> {
  const file = await openRegular(from);
  try {
    reach.check(await realPath(file), 'read');
    await reach.checkHeld(file, await file.stat());
    const target = await createFile(to.folder, to.name);
    try {
      await copyFile(inside(file), inside(target));
    } finally {
      await target.close();
    }
  } finally {
    await file.close();
  }
}

/** Never waits, should a pipe have taken the file's place. */
async function openRegular({ folder, name }: Spot): Promise<FileHandle> {
  const file = await open(inside(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refused('fs/copy only supports regular files, directories, and symlinks');
}
