// Stores checkpoints of a screen in memory, or in files that a later server finds. Only a few: dense near the end,
// where people look, and sparse before.

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../base/disk.ts';

export interface Checkpoint {
  readonly seq: number;
  readonly bytes: Uint8Array;
}

/** A missing or old checkpoint only costs time. */
export interface CheckpointStore {
  save(seq: number, bytes: Uint8Array): void | Promise<void>;
  /** The newest one at or before `seq`. */
  nearest(seq: number): Checkpoint | undefined | Promise<Checkpoint | undefined>;
}

const MAX_CHECKPOINTS = 12;

export class MemoryCheckpoints implements CheckpointStore {
  private readonly kept = new Map<number, Uint8Array>();

  save(seq: number, bytes: Uint8Array): void {
    this.kept.set(seq, bytes);
    for (const old of surplus([...this.kept.keys()])) this.kept.delete(old);
  }

  nearest(seq: number): Checkpoint | undefined {
    const at = newest([...this.kept.keys()], seq);
    const bytes = at === undefined ? undefined : this.kept.get(at);
    return at === undefined || bytes === undefined ? undefined : { seq: at, bytes };
  }
}

const SUFFIX = '.screen';

/** One private file per checkpoint, in a folder of the process; a missing folder counts as empty. */
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
    for (const old of surplus(await this.numbers())) await rm(this.path(old), { force: true });
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

/** Above the maximum, removes the one whose neighbours are closest together; never the last two. */
function surplus(numbers: readonly number[]): number[] {
  const kept = numbers.toSorted((a, b) => a - b);
  const gone: number[] = [];
  while (kept.length > MAX_CHECKPOINTS) {
    let least = 0;
    for (let at = 1; at < kept.length - 2; at += 1) {
      if (spacing(kept, at) < spacing(kept, least)) least = at;
    }
    gone.push(...kept.splice(least, 1));
  }
  return gone;
}

/** How far a lookup would fall back without it, relative to its distance from the end. */
function spacing(kept: readonly number[], at: number): number {
  const end = kept.at(-1) ?? 0;
  return ((kept[at + 1] ?? 0) - (kept[at - 1] ?? 0)) / (end - (kept[at] ?? 0) + 1);
}
