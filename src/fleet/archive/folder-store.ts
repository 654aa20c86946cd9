// An archive in a folder: for one gateway, or on a file system that several share.

import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ArchiveStore } from './archive-store.ts';

const MOST_KEYS = 1000;
const UNFINISHED = '.new';

export class FolderStore implements ArchiveStore {
  readonly place: string;

  constructor(url: URL) {
    this.place = fileURLToPath(url);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.place, key);
    const made = `${path}.${randomUUID()}${UNFINISHED}`;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await writeFile(made, bytes, { mode: 0o600, flush: true });
      await rename(made, path);
    } catch (error) {
      await rm(made, { force: true }).catch(() => undefined);
      throw this.unavailable(error);
    }
  }

  async get(key: string): Promise<Buffer | undefined> {
    try {
      return await readFile(join(this.place, key));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined;
      throw this.unavailable(error);
    }
  }

  async list(prefix: string): Promise<string[]> {
    const folder = dirname(`${prefix}x`);
    try {
      const names = await readdir(join(this.place, folder));
      return names
        .map((name) => `${folder}/${name}`)
        .filter((key) => key.startsWith(prefix) && !key.endsWith(UNFINISHED))
        .sort()
        .slice(0, MOST_KEYS);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return [];
      throw this.unavailable(error);
    }
  }

  async remove(key: string): Promise<void> {
    try {
      await rm(join(this.place, key), { force: true });
    } catch (error) {
      throw this.unavailable(error);
    }
  }

  private unavailable(error: unknown): HoldfastError {
    const why = errnoOf(error) ?? String(error);
    return new HoldfastError('archive_unavailable', `The archive ${this.place} failed: ${why}.`);
  }
}
