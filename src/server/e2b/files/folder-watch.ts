// Watches a folder, with its subfolders if wanted. Node reports only that a name changed, so each folder is compared with
// what it held before: that tells created, written, removed, renamed and changed modes apart.

import { watch, type FSWatcher, type Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { errnoOf } from '../../../base/disk.ts';
import { Mounts } from '../../../host/start/mounts.ts';
import { entryInfo, OwnerNames, type EntryInfo } from './entry-info.ts';
import { E2bError } from '../errors.ts';

type EventType = 'CREATE' | 'WRITE' | 'REMOVE' | 'RENAME' | 'CHMOD';

export interface WatchEvent {
  /** Relative to the watched folder. */
  readonly name: string;
  readonly type: `EVENT_TYPE_${EventType}`;
  readonly entry?: EntryInfo;
}

interface WatchOptions {
  readonly recursive: boolean;
  readonly includeEntry: boolean;
  readonly allowNetworkMounts: boolean;
  readonly hides: (path: string) => boolean;
}

interface WatchedFolder {
  readonly watcher: FSWatcher;
  entries: ReadonlyMap<string, Stats>;
}

/** Each is an inotify watch of this user. */
const MAX_FOLDERS = 4096;
/** More wait for their reader than this: it has stopped reading. */
const MAX_EVENTS = 10_000;

export class FolderWatch {
  private readonly root: string;
  private readonly options: WatchOptions;
  private readonly folders = new Map<string, WatchedFolder>();
  private readonly changed = new Set<string>();
  private events: WatchEvent[] = [];
  private comparing = false;
  private closed = false;
  private wake: (() => void) | undefined;

  private constructor(root: string, options: WatchOptions) {
    this.root = root;
    this.options = options;
  }

  /** Resolves when the watch stands: what is written after that is seen. */
  static async open(root: string, options: WatchOptions): Promise<FolderWatch> {
    const isElsewhere = new Mounts(undefined).look().find(root) === 'elsewhere';
    if (isElsewhere && !options.allowNetworkMounts)
      throw new E2bError('invalid_argument', `cannot watch path on network filesystem: ${root}`);
    const made = new FolderWatch(root, options);
    try {
      await made.add(root);
    } catch (error) {
      made.close();
      throw error;
    }
    return made;
  }

  /** The events since the last call, after at most `waitMs`; none if nothing happened. */
  async next(waitMs: number, clock: Clock): Promise<readonly WatchEvent[] | 'closed'> {
    if (this.events.length === 0 && !this.closed)
      await new Promise<void>((resolve) => {
        const cancel = clock.after(waitMs, resolve);
        this.wake = () => {
          cancel();
          resolve();
        };
      });
    this.wake = undefined;
    const events = this.events;
    this.events = [];
    return events.length === 0 && this.closed ? 'closed' : events;
  }

  close(): void {
    this.closed = true;
    for (const { watcher } of this.folders.values()) watcher.close();
    this.folders.clear();
    this.wake?.();
  }

  /** Watches first and looks afterwards, so that no change is missed. */
  private async add(path: string): Promise<ReadonlyMap<string, Stats>> {
    if (this.folders.size >= MAX_FOLDERS)
      throw new E2bError(
        'resource_exhausted',
        `more than ${MAX_FOLDERS} folders below ${this.root}`,
      );
    const folder: WatchedFolder = { watcher: this.watchFolder(path), entries: new Map() };
    this.folders.set(path, folder);
    folder.entries = await statsIn(path);
    if (this.options.recursive)
      for (const [name, stats] of folder.entries)
        if (stats.isDirectory() && !this.options.hides(join(path, name)))
          await this.add(join(path, name));
    return folder.entries;
  }

  private watchFolder(path: string): FSWatcher {
    try {
      // Not persistent: a watch does not keep the server alive.
      const watcher = watch(path, { persistent: false }, () => this.look(path));
      return watcher.on('error', () => this.look(path));
    } catch (error) {
      if (errnoOf(error) !== 'ENOSPC' && errnoOf(error) !== 'EMFILE') throw error;
      throw new E2bError('resource_exhausted', 'this user may watch no more folders');
    }
  }

  private look(path: string): void {
    this.changed.add(path);
    if (!this.comparing) void this.compareAll();
  }

  /** One folder at a time, and again those that changed meanwhile. */
  private async compareAll(): Promise<void> {
    this.comparing = true;
    try {
      for (const path of this.changed) {
        this.changed.delete(path);
        if (!this.closed) await this.compare(path);
      }
    } catch {
      // What can no longer be watched ends the watch; its client sees that.
      this.close();
    } finally {
      this.comparing = false;
    }
  }

  private async compare(path: string): Promise<void> {
    const folder = this.folders.get(path);
    if (!folder) return;
    const before = folder.entries;
    const now = await statsIn(path).catch((error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw error;
      return undefined;
    });
    if (!now) return this.removed(path);
    folder.entries = now;
    const numbers = new Set(Array.from(now.values(), ({ ino }) => ino));
    for (const [name, stats] of before)
      if (!now.has(name)) {
        this.forget(join(path, name));
        await this.report(numbers.has(stats.ino) ? 'RENAME' : 'REMOVE', join(path, name));
      }
    for (const [name, stats] of now)
      await this.compareEntry(join(path, name), before.get(name), stats);
  }

  private async compareEntry(path: string, before: Stats | undefined, now: Stats): Promise<void> {
    if (!before || before.ino !== now.ino) {
      await this.report('CREATE', path);
      if (now.isFile() && now.size > 0) await this.report('WRITE', path);
      if (now.isDirectory() && this.options.recursive) await this.addNew(path);
      return;
    }
    // The time of a folder changes with its entries, which have events of their own.
    if (!now.isDirectory() && (before.mtimeMs !== now.mtimeMs || before.size !== now.size))
      await this.report('WRITE', path);
    if (before.mode !== now.mode) await this.report('CHMOD', path);
  }

  /** What is already in a new folder is new, too. */
  private async addNew(path: string): Promise<void> {
    if (this.options.hides(path)) return;
    const entries = await this.add(path).catch((error: unknown) => {
      if (errnoOf(error) !== 'ENOENT') throw error;
      return new Map<string, Stats>();
    });
    for (const [name, stats] of entries) {
      await this.report('CREATE', join(path, name));
      if (stats.isFile() && stats.size > 0) await this.report('WRITE', join(path, name));
    }
  }

  private removed(path: string): void {
    this.forget(path);
    if (path === this.root) this.close();
  }

  private forget(path: string): void {
    this.folders.get(path)?.watcher.close();
    this.folders.delete(path);
  }

  private async report(type: EventType, path: string): Promise<void> {
    const { includeEntry, hides } = this.options;
    if (hides(path)) return;
    const has = includeEntry && type !== 'REMOVE' && type !== 'RENAME';
    const entry = has
      ? await entryInfo(path, await OwnerNames.read()).catch(() => undefined)
      : undefined;
    const name = relative(this.root, path);
    this.events.push({ name, type: `EVENT_TYPE_${type}`, ...(entry && { entry }) });
    if (this.events.length > MAX_EVENTS) throw new Error('the reader of a watch has stopped');
    this.wake?.();
  }
}

async function statsIn(path: string): Promise<Map<string, Stats>> {
  const found = new Map<string, Stats>();
  for (const name of await readdir(path)) {
    const stats = await lstat(join(path, name)).catch(() => undefined);
    if (stats) found.set(name, stats);
  }
  return found;
}
