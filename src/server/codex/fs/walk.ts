// fs/walk: the names in a tree, breadth first, sorted within each folder, within the caller's limits and fixed ones.
// The answer says if a limit cut it, and lists folders that could not be read.

import { lstat, type FileHandle } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { answeringMounts } from './answering-mounts.ts';
import { osText, refused } from './error.ts';
import { withOpened, type PathOptions } from './opened-path.ts';
import { namesIn, type ListedName } from './tree.ts';
import { formatUri, join, pathBytes, type BytePath } from './uri.ts';
import type { Fields } from '../params.ts';

const MAX_DEPTH = 64;
const MAX_DIRECTORIES = 10_000;
const MAX_ENTRIES = 50_000;
/** The real client drops a connection with a larger frame; codex's server stays below this too. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export interface WalkOptions {
  readonly maxDepth: number;
  readonly maxDirectories: number;
  readonly maxEntries: number;
  readonly followDirectorySymlinks: boolean;
  readonly pruneHiddenDirectories: boolean;
}

export function walkOptions(fields: Fields): WalkOptions {
  const options = {
    maxDepth: fields.count('maxDepth'),
    maxDirectories: fields.count('maxDirectories'),
    maxEntries: fields.count('maxEntries'),
    followDirectorySymlinks: fields.flag('followDirectorySymlinks'),
    pruneHiddenDirectories: fields.optionalFlag('pruneHiddenDirectories'),
  };
  if (options.maxDirectories === 0 || options.maxEntries === 0)
    throw refused('filesystem walk limits must be greater than zero');
  const { maxDepth, maxDirectories, maxEntries } = options;
  if (maxDepth > MAX_DEPTH || maxDirectories > MAX_DIRECTORIES || maxEntries > MAX_ENTRIES)
    throw refused(
      `filesystem walk limits exceed maximums: depth=${MAX_DEPTH}, directories=${MAX_DIRECTORIES}, entries=${MAX_ENTRIES}`,
    );
  return options;
}

interface WalkEntry {
  readonly path: string;
  readonly kind: 'directory' | 'file';
}

export interface WalkResult {
  readonly entries: readonly WalkEntry[];
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  readonly truncated: boolean;
}

export function walk(
  path: BytePath,
  options: WalkOptions,
  pathOptions: PathOptions,
): Promise<WalkResult> {
  return new Walk(options, pathOptions).from(path);
}

interface Folder {
  /** As the caller named it, links included. */
  readonly path: BytePath;
  readonly real: BytePath;
  readonly depth: number;
}

class Walk {
  private readonly options: WalkOptions;
  private readonly pathOptions: PathOptions;
  private readonly entries: WalkEntry[] = [];
  private readonly errors: { path: string; message: string }[] = [];
  /** Folders that were entered, by device and inode, so that a cycle of links ends. */
  private readonly entered = new Set<string>();
  private queue: Folder[] = [];
  private directories = 0;
  private names = 0;
  private bytes = 0;
  private truncated = false;

  constructor(options: WalkOptions, pathOptions: PathOptions) {
    this.options = options;
    this.pathOptions = pathOptions;
  }

  async from(root: BytePath): Promise<WalkResult> {
    this.pathOptions.access.checkName(root);
    await answeringMounts.check(root);
    const link = (await lstat(pathBytes(root))).isSymbolicLink();
    await withOpened(root, this.pathOptions, async ({ stats, real }) => {
      if (stats.isDirectory() && (this.options.followDirectorySymlinks || !link))
        this.queue = [{ path: root, real, depth: 0 }];
    });
    while (this.queue.length > 0 && !this.truncated) {
      const level = this.queue;
      this.queue = [];
      for (const folder of level) {
        if (this.truncated) break;
        await this.enter(folder);
      }
    }
    return { entries: this.entries, errors: this.errors, truncated: this.truncated };
  }

  private async enter(folder: Folder): Promise<void> {
    if (this.directories >= this.options.maxDirectories) {
      this.truncated = true;
      return;
    }
    try {
      await withOpened(folder.path, this.pathOptions, async ({ handle, real, stats }) => {
        const mark = `${stats.dev}:${stats.ino}`;
        if (this.entered.has(mark)) return;
        // The folder was replaced by a link: without following links, it is no longer the folder that was listed.
        if (!this.options.followDirectorySymlinks && real !== folder.real) return;
        this.entered.add(mark);
        this.directories += 1;
        await this.read({ ...folder, real }, handle);
      });
    } catch (error) {
      const code = errnoOf(error);
      if (code === undefined || folder.depth === 0) throw error;
      this.addError({ path: formatUri(folder.path), message: osText(code) });
    }
  }

  private async read(folder: Folder, handle: FileHandle): Promise<void> {
    const left = this.options.maxEntries - this.names;
    const names = await namesIn(handle, MAX_ENTRIES);
    if (names.length > left) this.truncated = true;
    for (const listed of names.slice(0, left)) {
      this.names += 1;
      await this.addEntry(folder, listed);
    }
  }

  private async addEntry(folder: Folder, { name, entry }: ListedName): Promise<void> {
    const path = join(folder.path, name);
    const isFolder =
      entry.isDirectory() || (entry.isSymbolicLink() && (await this.leadsToFolder(path)));
    if (!isFolder && !entry.isFile()) return;
    const found: WalkEntry = { path: formatUri(path), kind: isFolder ? 'directory' : 'file' };
    this.bytes += found.path.length + 32;
    if (this.bytes > MAX_ANSWER_BYTES) {
      this.truncated = true;
      return;
    }
    this.entries.push(found);
    const hidden = this.options.pruneHiddenDirectories && name.startsWith('.');
    if (isFolder && folder.depth < this.options.maxDepth && !hidden)
      this.queue.push({ path, real: join(folder.real, name), depth: folder.depth + 1 });
  }

  /** A link to a folder, if links are followed. */
  private async leadsToFolder(path: BytePath): Promise<boolean> {
    if (!this.options.followDirectorySymlinks) return false;
    try {
      return await withOpened(path, this.pathOptions, async ({ stats }) => stats.isDirectory());
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return false;
    }
  }

  private addError(error: { path: string; message: string }): void {
    this.bytes += error.path.length + error.message.length + 32;
    if (this.bytes > MAX_ANSWER_BYTES) this.truncated = true;
    else this.errors.push(error);
  }
}
