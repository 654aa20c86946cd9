// Processes that are read from the archive because their host is gone. The segments are fetched, checked, and opened by the
// same code as on a host: a host of its own per process, in a folder of the gateway.

import { mkdirSync, rmSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { idPattern } from '../../base/ids.ts';
import { Host } from '../../host/host.ts';
import { segmentName } from '../../journal/read/segment.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type HostApi, type Owner } from '../../protocol/host-api.ts';
import type { ArchiveStore } from './archive-store.ts';
import {
  damaged,
  decodeManifest,
  manifestPrefix,
  segmentKey,
  sha256,
  type Manifest,
} from './manifest.ts';

/** Each holds up to the size of a journal on disk. */
const MOST_OPEN = 16;
/** A made id begins with the tag of its host. */
const TAG_LETTERS = 7;
/** Nothing is deleted because of its age or size. */
const KEEP_ALL = { closedCount: 2 ** 31, closedAgeMs: 2 ** 47, totalBytes: 2 ** 47 } as const;

export interface ArchivedProcess {
  readonly api: HostApi;
  readonly manifest: Manifest;
}

interface Opened {
  readonly folder: string;
  readonly host: Promise<Host>;
  /** Calls that read from it now. */
  users: number;
  /** It is closed after its last user. */
  isDropped: boolean;
}

export class ArchiveReader {
  private readonly store: ArchiveStore;
  private readonly folder: string;
  /** By host and serial, the one used last at the end. */
  private readonly open = new Map<string, Opened>();
  private folders = 0;

  /** The folder is this reader's alone; what an earlier one left there is removed. */
  constructor(store: ArchiveStore, folder: string) {
    this.store = store;
    this.folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** The process stays open during the call. Undefined if the archive has no such process of this owner. */
  async use<T>(
    owner: Owner,
    id: string,
    act: (found: ArchivedProcess) => Promise<T>,
  ): Promise<T | undefined> {
    // An id becomes part of a key.
    const [manifest] = idPattern.test(id) ? await this.manifests(owner, id) : [];
    if (!manifest) return undefined;
    const opened = this.openedOf(manifest);
    opened.users += 1;
    try {
      const [oldest] = this.open.keys();
      if (this.open.size > MOST_OPEN && oldest !== undefined) await this.drop(oldest);
      return await act({ api: await opened.host, manifest });
    } finally {
      opened.users -= 1;
      if (opened.isDropped) await end(opened);
    }
  }

  /** Removes every copy of it; false if there is none. */
  async remove(owner: Owner, id: string): Promise<boolean> {
    const keys = idPattern.test(id) ? await this.store.list(manifestPrefix(owner, id)) : [];
    for (const key of keys) {
      const stored = await this.store.get(key);
      await this.store.remove(key);
      const manifest = stored && decodeManifest(stored, key);
      if (!manifest) continue;
      for (const { number } of manifest.segments)
        await this.store.remove(segmentKey(manifest, number));
      await this.drop(nameOf(manifest));
    }
    return keys.length > 0;
  }

  async close(): Promise<void> {
    for (const name of this.open.keys()) await this.drop(name);
  }

  /** Of several hosts that claim an id, the one whose tag it has. */
  private async manifests(owner: Owner, id: string): Promise<Manifest[]> {
    const found: Manifest[] = [];
    for (const key of await this.store.list(manifestPrefix(owner, id))) {
      const stored = await this.store.get(key);
      const manifest = stored && decodeManifest(stored, key);
      if (manifest?.id === id && (owner === EVERYONE || manifest.owner === owner))
        found.push(manifest);
    }
    const tagged = found.filter(({ tag }) => tag !== '' && id.slice(0, TAG_LETTERS) === tag);
    const left = tagged.length > 0 ? tagged : found;
    if (left.length <= 1) return left;
    const problem = `The archive has several processes "${id}", of the hosts ${left.map(({ host }) => host).join(', ')}.`;
    throw new HoldfastError('ambiguous', problem, { id });
  }

  private openedOf(manifest: Manifest): Opened {
    const name = nameOf(manifest);
    const opened = this.open.get(name) ?? this.begin(manifest, name);
    this.open.delete(name);
    this.open.set(name, opened);
    return opened;
  }

  /** In a folder of its own: an earlier one may still be removed. */
  private begin(manifest: Manifest, name: string): Opened {
    const folder = join(this.folder, `${name}.${++this.folders}`);
    const host = this.fetch(manifest, folder);
    const opened: Opened = { folder, host, users: 0, isDropped: false };
    host.catch(() => {
      if (this.open.get(name) === opened) this.open.delete(name);
    });
    return opened;
  }

  private async fetch(manifest: Manifest, folder: string): Promise<Host> {
    const journals = join(folder, 'journals');
    mkdirSync(journals, { recursive: true, mode: 0o700 });
    try {
      for (const { number, sha256: wanted } of manifest.segments) {
        const key = segmentKey(manifest, number);
        const bytes = await this.store.get(key);
        if (!bytes || sha256(bytes) !== wanted) throw damaged(key);
        await writeFile(join(journals, segmentName(manifest.serial, number)), bytes, {
          mode: 0o600,
        });
      }
      // It never grows older than it was when it closed.
      const clock = { ...systemClock, wallMs: () => manifest.closedAtMs };
      const surroundings = { env: {}, cwd: '/', home: '/' };
      return await Host.open({ folder, surroundings, clock, limits: KEEP_ALL });
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  private async drop(name: string): Promise<void> {
    const opened = this.open.get(name);
    this.open.delete(name);
    if (!opened) return;
    opened.isDropped = true;
    await end(opened);
  }
}

/** Does nothing while a call reads from it. */
async function end({ users, host, folder }: Opened): Promise<void> {
  if (users > 0) return;
  await (await host.catch(() => undefined))?.close();
  await rm(folder, { recursive: true, force: true });
}

/** Of its folder. */
function nameOf({ host, serial }: Manifest): string {
  return `${host}.${serial}`;
}
