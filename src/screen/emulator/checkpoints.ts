// Where checkpoints of a screen are kept: in memory, or as files that a later server finds. Only a few, close together at
// the end and thinner before it, as that is where people look.

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../base/disk.ts';

export interface Checkpoint {
  readonly seq: number;
  readonly bytes: Uint8Array;
}

/** What it answers may be old or missing; it only saves time. */
export interface CheckpointStore {
  save(seq: number, bytes: Uint8Array): void | Promise<void>;
  /** The newest with a number of at most `seq`. */
  nearest(seq: number): Checkpoint | undefined | Promise<Checkpoint | undefined>;
}

const KEPT = 12;

export class MemoryCheckpoints implements CheckpointStore {
  private readonly kept = new Map<number, Uint8Array>();

  save(seq: number, bytes: Uint8Array): void {
    this.kept.set(seq, bytes);
    for (const old of superfluous([...this.kept.keys()])) this.kept.delete(old);
  }

  nearest(seq: number): Checkpoint | undefined {
    const at = newest([...this.kept.keys()], seq);
    const bytes = at === undefined ? undefined : this.kept.get(at);
    return at === undefined || bytes === undefined ? undefined : { seq: at, bytes };
  }
}

const SUFFIX = '.screen';

/** One file each in a folder of the process's own, readable by the owner only; not there is the same as empty. */
export class FileCheckpoints implements CheckpointStore {
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  async save(seq: number, bytes: Uint8Array): Promise<void> {
    const path = this.path(seq);
    try {
      await mkdir(this.folder, { recursive: true, mode: 0o700 });
      // A truncated file is detected when it is read, so it need not be synced.
      await writeFile(`${path}.new`, bytes, { mode: 0o600 });
      await rename(`${path}.new`, path);
    } catch (error) {
      // The process was removed meanwhile, and its folder with it.
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
    for (const old of superfluous(await this.numbers())) await rm(this.path(old), { force: true });
  }

  async nearest(seq: number): Promise<Checkpoint | undefined> {
    const at = newest(await this.numbers(), seq);
    if (at === undefined) return undefined;
    return { seq: at, bytes: await readFile(this.path(at)) };
  }

  private async numbers(): Promise<number[]> {
    try {
      const names = await readdir(this.folder);
      return names.filter((name) => name.endsWith(SUFFIX)).map((name) => Number.parseInt(name, 10));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  private path(seq: number): string {
    return join(this.folder, `${seq}${SUFFIX}`);
  }
}

function newest(numbers: readonly number[], upTo: number): number | undefined {
  const fitting = numbers.filter((number) => number <= upTo);
  return fitting.length === 0 ? undefined : Math.max(...fitting);
}

/** Beyond the few that are kept, the one whose neighbours are closest together; never the last two. */
function superfluous(numbers: readonly number[]): number[] {
  const kept = numbers.toSorted((a, b) => a - b);
  const gone: number[] = [];
  while (kept.length > KEPT) {
    let least = 0;
    for (let at = 1; at < kept.length - 2; at += 1) {
      if (room(kept, at) < room(kept, least)) least = at;
    }
    gone.push(...kept.splice(least, 1));
  }
  return gone;
}

/** How far a search would fall back without it, in proportion to its distance from the end. */
function room(kept: readonly number[], at: number): number {
  const end = kept.at(-1) ?? 0;
  return ((kept[at + 1] ?? 0) - (kept[at - 1] ?? 0)) / (end - (kept[at] ?? 0) + 1);
}
