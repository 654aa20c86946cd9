// fs/watchMissing: notifies once when a missing path appears, or when a present one changes or disappears. It watches
// the nearest existing folder for the first missing name.

import { watch, type FSWatcher } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { answeringMounts } from './answering-mounts.ts';
import { isWithin, join, nameOf, parentOf, pathBytes, type BytePath } from './uri.ts';

/** With more, the answer says that nothing is watched. */
const MAX_PATHS = 64;

export interface WatchedPaths {
  readonly missing: readonly BytePath[];
  readonly present: BytePath | undefined;
}

export class MissingWatch {
  private readonly paths: WatchedPaths;
  private readonly changed: () => void;
  private watchers: FSWatcher[] = [];
  /** For each missing path, its first missing part. */
  private gaps: readonly BytePath[] = [];
  private stopped = false;
  private checking = false;
  private pending = false;

  private constructor(paths: WatchedPaths, changed: () => void) {
    this.paths = paths;
    this.changed = changed;
  }

  /**
   * Undefined if the paths are not as described or cannot be watched. `changed` is called once, never before this
   * returns.
   */
  static async start(paths: WatchedPaths, changed: () => void): Promise<MissingWatch | undefined> {
    const count = paths.missing.length + (paths.present === undefined ? 0 : 1);
    if (count === 0 || count > MAX_PATHS) return undefined;
    const watching = new MissingWatch(paths, changed);
    try {
      if (await watching.arm()) return watching;
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
    watching.stop();
    return undefined;
  }

  stop(): void {
    this.stopped = true;
    this.disarm();
  }

  /** Watches first and checks afterwards, so that no change is missed. False if the paths are not as described. */
  private async arm(): Promise<boolean> {
    for (;;) {
      const gaps = await Promise.all(this.paths.missing.map(firstMissing));
      if (gaps.some((gap) => gap === undefined)) return false;
      this.disarm();
      if (this.stopped) return true;
      this.gaps = gaps.filter((gap) => gap !== undefined);
      for (const gap of this.gaps) this.watchFolder(gap);
      const { present } = this.paths;
      if (present !== undefined) {
        this.watchFolder(present);
        this.add(present, () => this.notify());
      }
      if (await this.isSame()) return present === undefined || (await exists(present));
    }
  }

  private disarm(): void {
    for (const watcher of this.watchers) watcher.close();
    this.watchers = [];
  }

  /** Wakes for this name in its folder, and when the folder itself disappears. */
  private watchFolder(path: BytePath): void {
    const folder = parentOf(path);
    const names = new Set([nameOf(path), nameOf(folder)]);
    this.add(folder, (name) => {
      if (name === undefined || names.has(name)) void this.check();
    });
  }

  private add(path: BytePath, onEvent: (name: string | undefined) => void): void {
    // Not persistent: a watch does not keep the server alive.
    const watcher = watch(
      pathBytes(path),
      { encoding: 'buffer', persistent: false },
      (_event, name) => onEvent(name === null ? undefined : name.toString('latin1')),
    );
    watcher.on('error', () => this.notify());
    this.watchers.push(watcher);
  }

  private async isSame(): Promise<boolean> {
    const gaps = await Promise.all(this.paths.missing.map(firstMissing));
    return gaps.every((gap, index) => gap === this.gaps[index]);
  }

  /** One check at a time, and one more for changes during it. */
  private async check(): Promise<void> {
    this.pending = true;
    if (this.checking) return;
    this.checking = true;
    try {
      while (this.pending && !this.stopped) {
        this.pending = false;
        if (await this.hasChanged()) this.notify();
        else if (!(await this.isSame()) && !(await this.arm())) this.notify();
      }
    } catch {
      // The client checks again what can no longer be watched.
      this.notify();
    } finally {
      this.checking = false;
    }
  }

  /**
   * Whether a missing path appeared, at least one more part of it, or a present one disappeared. A path that lost parts
   * does not count.
   */
  private async hasChanged(): Promise<boolean> {
    const gaps = await Promise.all(this.paths.missing.map(firstMissing));
    const closed = gaps.some((gap, index) => {
      const before = this.gaps[index];
      return gap === undefined || (before !== undefined && gap !== before && isWithin(before, gap));
    });
    const { present } = this.paths;
    return closed || (present !== undefined && !(await exists(present)));
  }

  private notify(): void {
    if (this.stopped) return;
    this.stop();
    this.changed();
  }
}

/** The first part of a path that does not exist; undefined if all exist. A link at the end is not followed. */
async function firstMissing(path: BytePath): Promise<BytePath | undefined> {
  let known = '/';
  const parts = path.split('/').filter((part) => part !== '');
  for (const part of parts) {
    const next = join(known, part);
    if (!(await exists(next))) return next;
    known = next;
  }
  return undefined;
}

async function exists(path: BytePath): Promise<boolean> {
  try {
    await answeringMounts.check(path);
    await lstat(pathBytes(path));
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
