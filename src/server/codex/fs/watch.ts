// fs/watchMissing: tells once when something appears that was missing, or when something that was there changes or goes.
// The nearest folder that exists is watched for the first name that does not, so a path is noticed from its first part on.

import { watch, type FSWatcher } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { isWithin, join, nameOf, parentOf, pathBytes, type BytePath } from './uri.ts';

/** More is not watched, and the answer says so. */
const MAX_PATHS = 64;

export interface Wanted {
  readonly missing: readonly BytePath[];
  readonly present: BytePath | undefined;
}

export class MissingWatch {
  private readonly wanted: Wanted;
  private readonly changed: () => void;
  private watchers: FSWatcher[] = [];
  /** For each missing path the first part of it that is missing. */
  private gaps: readonly BytePath[] = [];
  private over = false;
  private looking = false;
  private again = false;

  private constructor(wanted: Wanted, changed: () => void) {
    this.wanted = wanted;
    this.changed = changed;
  }

  /** Undefined when things are not as described, or cannot be watched. `changed` is called once, never before this ends. */
  static async start(wanted: Wanted, changed: () => void): Promise<MissingWatch | undefined> {
    const count = wanted.missing.length + (wanted.present === undefined ? 0 : 1);
    if (count === 0 || count > MAX_PATHS) return undefined;
    const watching = new MissingWatch(wanted, changed);
    try {
      if (await watching.arm()) return watching;
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
    }
    watching.stop();
    return undefined;
  }

  stop(): void {
    this.over = true;
    this.disarm();
  }

  /** Watches first and looks afterwards, so that nothing falls between. False when things are not as described. */
  private async arm(): Promise<boolean> {
    for (;;) {
      const gaps = await Promise.all(this.wanted.missing.map(firstMissing));
      if (gaps.some((gap) => gap === undefined)) return false;
      this.disarm();
      if (this.over) return true;
      this.gaps = gaps.filter((gap) => gap !== undefined);
      for (const gap of this.gaps) this.watchFolder(gap);
      const { present } = this.wanted;
      if (present !== undefined) {
        this.watchFolder(present);
        this.add(present, () => this.tell());
      }
      if (await this.isSame()) return present === undefined || (await exists(present));
    }
  }

  private disarm(): void {
    for (const watcher of this.watchers) watcher.close();
    this.watchers = [];
  }

  /** Wakes for this name in its folder, and when the folder itself goes. */
  private watchFolder(path: BytePath): void {
    const folder = parentOf(path);
    const names = new Set([nameOf(path), nameOf(folder)]);
    this.add(folder, (name) => {
      if (name === undefined || names.has(name)) void this.look();
    });
  }

  private add(path: BytePath, woken: (name: string | undefined) => void): void {
    // Not persistent: a watch keeps no server alive.
    const watcher = watch(
      pathBytes(path),
      { encoding: 'buffer', persistent: false },
      (_event, name) => woken(name === null ? undefined : name.toString('latin1')),
    );
    watcher.on('error', () => this.tell());
    this.watchers.push(watcher);
  }

  private async isSame(): Promise<boolean> {
    const gaps = await Promise.all(this.wanted.missing.map(firstMissing));
    return gaps.every((gap, index) => gap === this.gaps[index]);
  }

  /** One look at a time, and one more for whatever happened during it. */
  private async look(): Promise<void> {
    this.again = true;
    if (this.looking) return;
    this.looking = true;
    try {
      while (this.again && !this.over) {
        this.again = false;
        if (await this.hasChanged()) this.tell();
        else if (!(await this.isSame()) && !(await this.arm())) this.tell();
      }
    } catch {
      // What can no longer be watched is looked at again by the client.
      this.tell();
    } finally {
      this.looking = false;
    }
  }

  /** A gap that closed, at least by one part, or something present that went. A gap that widened is none. */
  private async hasChanged(): Promise<boolean> {
    const gaps = await Promise.all(this.wanted.missing.map(firstMissing));
    const closed = gaps.some((gap, index) => {
      const before = this.gaps[index];
      return gap === undefined || (before !== undefined && gap !== before && isWithin(before, gap));
    });
    const { present } = this.wanted;
    return closed || (present !== undefined && !(await exists(present)));
  }

  private tell(): void {
    if (this.over) return;
    this.stop();
    this.changed();
  }
}

/** The first part of a path that is not there; undefined when all of it is. Not followed at its end. */
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
    await lstat(pathBytes(path));
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return false;
    throw error;
  }
}
