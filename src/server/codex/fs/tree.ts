// Lists, walks, removes and copies trees. Each folder stays open while its entries are handled, and they are reached
// through it, so that a folder that is replaced by a link leads nowhere else.

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
  withOpened,
  type PathOptions,
} from './opened-path.ts';
import { isWithin, join, nameOf, parentOf, type BytePath } from './uri.ts';
import { RpcError, rpcCodes } from '../rpc.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** One open folder per level: the kernel accepts no deeper path, and descriptors are limited. */
const MAX_LEVELS = 1000;
const MAX_LISTED = 50_000;

export interface ListedName {
  readonly name: string;
  readonly entry: Dirent;
}

/** The names in an open folder, sorted; at most one more than `most`. */
export async function namesIn(folder: FileHandle, most: number): Promise<ListedName[]> {
  const names: ListedName[] = [];
  // Buffers, because a name need not be UTF-8; Node's types do not allow it.
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

export async function listFolder(
  path: BytePath,
  pathOptions: PathOptions,
): Promise<DirectoryEntry[]> {
  return withOpened(path, pathOptions, async ({ handle, real, stats }) => {
    if (!stats.isDirectory()) throw new SystemError('ENOTDIR');
    const names = await namesIn(handle, MAX_LISTED);
    if (names.length > MAX_LISTED)
      throw new RpcError(
        rpcCodes.failed,
        `fs/readDirectory returned ${names.length} entries; limit is ${MAX_LISTED}`,
      );
    const entries: DirectoryEntry[] = [];
    for (const { name, entry } of names) {
      const kind = entry.isSymbolicLink() ? await targetKind(join(real, name), pathOptions) : entry;
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

/** Undefined for a link that is broken or leads out of reach. */
async function targetKind(path: BytePath, { access }: PathOptions): Promise<Kind | undefined> {
  try {
    return await withOpened(path, { access, follow: true }, async ({ stats }) => stats);
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

export interface RemoveOptions {
  readonly recursive: boolean;
  /** A missing path counts as removed. */
  readonly force: boolean;
}

/** Removes a link itself, never its target. */
export async function removeTree(
  path: BytePath,
  options: RemoveOptions,
  pathOptions: PathOptions,
): Promise<void> {
  const name = nameOf(path);
  if (name === '') throw new SystemError('EBUSY');
  try {
    await withFolder(parentOf(path), pathOptions, async ({ handle, real }) => {
      const target = join(real, name);
      pathOptions.access.check(target, 'read');
      // A missing path is reported before a forbidden one.
      await lstat(inside(handle, name));
      if (options.recursive) {
        pathOptions.access.checkTree(target, 'write');
        return removeAll(handle, name, { pathOptions, level: 0 });
      }
      pathOptions.access.check(target, 'write');
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
  { pathOptions, level }: { pathOptions: PathOptions; level: number },
): Promise<void> {
  if (level > MAX_LEVELS) throw new SystemError('ENAMETOOLONG');
  const path = inside(folder, name);
  if (!(await lstat(path)).isDirectory()) return unlink(path);
  await withFolderIn(folder, name, pathOptions, async (opened) => {
    for (;;) {
      // In portions: a folder may have more names than fit in memory.
      const names = await namesIn(opened, 1000);
      if (names.length === 0) return;
      for (const { name: inner } of names)
        await removeAll(opened, inner, { pathOptions, level: level + 1 });
    }
  });
  await rmdir(path);
}

/** Opens a folder inside an open one; fails if the name is a link, or if something hidden is mounted there. */
async function withFolderIn<T>(
  folder: FileHandle,
  name: string,
  { access }: PathOptions,
  use: (opened: FileHandle) => Promise<T>,
): Promise<T> {
  const opened = await open(inside(folder, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    await access.checkOpened(opened);
    return await use(opened);
  } finally {
    await opened.close();
  }
}

/** Copies links as links and skips pipes and devices. Existing destinations are not merged. */
export async function copyTree(
  from: BytePath,
  to: BytePath,
  recursive: boolean,
  pathOptions: PathOptions,
): Promise<void> {
  await withFolder(parentOf(from), pathOptions, async (source) => {
    const real = join(source.real, nameOf(from));
    // The root has no name inside a parent.
    if (nameOf(from) === '') throw refused(INTO_ITSELF);
    const entry = { folder: source.handle, name: nameOf(from) };
    const stats = await lstat(inside(entry.folder, entry.name));
    // Onto an existing destination, and through links, as a write does.
    if (stats.isFile()) return copyContent(entry, pathOptions, () => openToWrite(to, pathOptions));
    pathOptions.access.checkTree(real, 'read');
    if (stats.isDirectory() && !recursive)
      throw refused('fs/copy requires recursive: true when sourcePath is a directory');
    if (!stats.isDirectory() && !stats.isSymbolicLink())
      throw refused('fs/copy only supports regular files, directories, and symlinks');
    await withFolder(parentOf(to), pathOptions, async (target) => {
      const end = join(target.real, nameOf(to));
      if (stats.isDirectory() && isWithin(real, end)) throw refused(INTO_ITSELF);
      pathOptions.access.check(end, 'write');
      const copy = { folder: target.handle, name: nameOf(to) };
      await copyEntry(entry, copy, { pathOptions, level: 0 });
    });
  });
}

const INTO_ITSELF = 'fs/copy cannot copy a directory to itself or one of its descendants';

interface EntryRef {
  readonly folder: FileHandle;
  readonly name: string;
}

async function copyEntry(
  from: EntryRef,
  to: EntryRef,
  { pathOptions, level }: { pathOptions: PathOptions; level: number },
): Promise<void> {
  if (level > MAX_LEVELS) throw new SystemError('ENAMETOOLONG');
  const stats = await lstat(inside(from.folder, from.name));
  if (stats.isSymbolicLink()) {
    const target = await readlink(inside(from.folder, from.name), 'buffer');
    return symlink(target, inside(to.folder, to.name));
  }
  if (stats.isFile()) return copyContent(from, pathOptions, () => createFile(to.folder, to.name));
  if (!stats.isDirectory()) return undefined;
  await mkdir(inside(to.folder, to.name), 0o700);
  await withFolderIn(from.folder, from.name, pathOptions, (source) =>
    withFolderIn(to.folder, to.name, pathOptions, async (target) => {
      pathOptions.access.check(await realPath(source), 'read');
      for (const { name } of await namesIn(source, Number.MAX_SAFE_INTEGER))
        await copyEntry(
          { folder: source, name },
          { folder: target, name },
          { pathOptions, level: level + 1 },
        );
      // Last: the source folder may be read-only, and its copy could then not be filled.
      await target.chmod(stats.mode & 0o777);
    }),
  );
}

async function copyContent(
  from: EntryRef,
  { access }: PathOptions,
  openTarget: () => Promise<FileHandle>,
): Promise<void> {
  const file = await openRegular(from);
  try {
    access.check(await realPath(file), 'read');
    await access.checkOpened(file, await file.stat());
    const target = await openTarget();
    try {
      // The kernel copies; a file onto itself stays unchanged.
      await copyFile(inside(file), inside(target));
    } finally {
      await target.close();
    }
  } finally {
    await file.close();
  }
}

/** O_NONBLOCK: a FIFO in the file's place does not block. */
async function openRegular({ folder, name }: EntryRef): Promise<FileHandle> {
  const file = await open(inside(folder, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refused('fs/copy only supports regular files, directories, and symlinks');
}
