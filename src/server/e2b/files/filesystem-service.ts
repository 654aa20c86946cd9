// E2B's filesystem service: entries are described, made, moved, listed, removed and watched.

import { readdir, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { errnoOf } from '../../../base/disk.ts';
import { answeringMounts } from '../../codex/fs/answering-mounts.ts';
import { removeTree } from '../../codex/fs/tree.ts';
import {
  makeFolder,
  withFolder,
  withOpened,
  type PathOptions,
} from '../../codex/fs/opened-path.ts';
import { bytePath, join as joinBytes, nameOf, parentOf } from '../../codex/fs/uri.ts';
import { RpcError } from '../../codex/rpc.ts';
import { writePaced } from '../../http/paced-write.ts';
import type { Exchange } from '../../http/router.ts';
import { envelope } from '../../../protocol/rendering/e2b-stream.ts';
import { entryInfo, OwnerNames, type EntryInfo } from './entry-info.ts';
import { E2bError, fileError } from '../errors.ts';
import { STREAM_HEADERS, type Target } from '../target.ts';
import { getFlag, getNumber, getText, invalid, type Fields } from '../messages.ts';
import type { SandboxPaths } from './sandbox-paths.ts';
import { expandPath, ownUser } from '../users.ts';
import { FolderWatch, type WatchEvent } from './folder-watch.ts';
import { keepaliveMs, timeoutOf } from '../stream-headers.ts';
import { PolledWatches } from './polled-watches.ts';

const MAX_LISTED = 50_000;

interface Place {
  readonly path: string;
  readonly options: PathOptions;
}

export class FilesystemService {
  private readonly paths: SandboxPaths;
  private readonly clock: Clock;
  private readonly polled: PolledWatches;

  readonly unary = {
    'filesystem.Filesystem/Stat': (target: Target, fields: Fields) =>
      this.at(target, fields, 'path', (place) => this.describe(place)),
    'filesystem.Filesystem/MakeDir': (target: Target, fields: Fields) =>
      this.at(target, fields, 'path', (place) => this.makeDir(place)),
    'filesystem.Filesystem/Move': (target: Target, fields: Fields) => this.move(target, fields),
    'filesystem.Filesystem/ListDir': (target: Target, fields: Fields) =>
      this.at(target, fields, 'path', (place) =>
        this.listDir(place, getNumber(fields, 'depth') || 1),
      ),
    'filesystem.Filesystem/Remove': (target: Target, fields: Fields) =>
      this.at(target, fields, 'path', (place) => remove(place)),
    'filesystem.Filesystem/CreateWatcher': (target: Target, fields: Fields) =>
      this.watch(target, fields, (watch) => this.polled.add(target.owner, watch)),
    'filesystem.Filesystem/GetWatcherEvents': async (target: Target, fields: Fields) =>
      this.polled.take(target.owner, getText(fields, 'watcherId') ?? ''),
    'filesystem.Filesystem/RemoveWatcher': async (target: Target, fields: Fields) =>
      this.polled.remove(target.owner, getText(fields, 'watcherId') ?? ''),
  };
  readonly streams = {
    'filesystem.Filesystem/WatchDir': (target: Target, fields: Fields, exchange: Exchange) =>
      this.watch(target, fields, (watch) => this.stream(watch, exchange)),
  };

  constructor(paths: SandboxPaths, clock: Clock) {
    this.paths = paths;
    this.clock = clock;
    this.polled = new PolledWatches(clock);
  }

  private async at<T>(
    target: Target,
    fields: Fields,
    name: string,
    act: (place: Place) => Promise<T>,
  ): Promise<T> {
    const place = await this.placeOf(target, fields, name);
    try {
      return await act(place);
    } catch (error) {
      throw translated(error, place.path);
    }
  }

  private async placeOf(target: Target, fields: Fields, name: string): Promise<Place> {
    const path = expandPath(getText(fields, name) ?? '', ownUser().home);
    return { path, options: await this.paths.optionsFor(target) };
  }

  private async describe(place: Place): Promise<{ entry: EntryInfo }> {
    await checkReal(place, 'read');
    return { entry: await entryInfo(place.path, await OwnerNames.read()) };
  }

  private async makeDir(place: Place): Promise<unknown> {
    const { path, options } = place;
    await answeringMounts.check(bytePath(path));
    const found = await stat(path).catch(missing);
    if (found?.isDirectory())
      throw new E2bError('already_exists', `directory already exists: ${path}`);
    if (found) throw invalid(`path already exists but it is not a directory: ${path}`);
    await makeFolder(bytePath(path), true, options);
    return this.describe(place);
  }

  private async move(target: Target, fields: Fields): Promise<unknown> {
    const from = await this.placeOf(target, fields, 'source');
    const to = await this.placeOf(target, fields, 'destination');
    try {
      await withOpened(bytePath(from.path), from.options, async () => undefined);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw translated(error, from.path);
      throw new E2bError('not_found', `source file not found: ${from.path}`);
    }
    try {
      await makeFolder(bytePath(dirname(to.path)), true, to.options);
      for (const place of [from, to]) await checkReal(place, 'write');
      await rename(from.path, to.path);
      return await this.describe(to);
    } catch (error) {
      throw translated(error, to.path);
    }
  }

  private async listDir({ path, options }: Place, depth: number): Promise<unknown> {
    const names = await OwnerNames.read();
    const entries: EntryInfo[] = [];
    const walk = async (folder: string, left: number): Promise<void> => {
      await answeringMounts.check(bytePath(folder));
      const found = await readdir(folder, { withFileTypes: true });
      for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const each = join(folder, entry.name);
        if (options.access.hides(bytePath(each))) continue;
        const info = await entryInfo(each, names).catch(missing);
        if (!info) continue;
        entries.push(info);
        if (entries.length > MAX_LISTED)
          throw new E2bError('resource_exhausted', `more than ${MAX_LISTED} entries in ${path}`);
        if (entry.isDirectory() && left > 1) await walk(each, left - 1);
      }
    };
    await withOpened(bytePath(path), options, async ({ stats }) => {
      if (!stats.isDirectory()) throw invalid(`path is not a directory: ${path}`);
    });
    await walk(path, depth);
    return { entries };
  }

  private async watch<T>(
    target: Target,
    fields: Fields,
    use: (watch: FolderWatch) => Promise<T>,
  ): Promise<T> {
    return this.at(target, fields, 'path', async ({ path, options }) => {
      await withOpened(bytePath(path), options, async ({ stats }) => {
        if (!stats.isDirectory()) throw invalid(`path is not a directory: ${path}`);
      });
      const watch = await FolderWatch.open(path, {
        recursive: getFlag(fields, 'recursive') === true,
        includeEntry: getFlag(fields, 'includeEntry') === true,
        allowNetworkMounts: getFlag(fields, 'allowNetworkMounts') === true,
        hides: (each) => options.access.hides(bytePath(each)),
      });
      return use(watch);
    });
  }

  private async stream(watch: FolderWatch, exchange: Exchange): Promise<void> {
    const { response, request, gone } = exchange;
    const quietMs = keepaliveMs(request);
    const timeoutMs = timeoutOf(request);
    const untilMs = timeoutMs === undefined ? Infinity : this.clock.wallMs() + timeoutMs;
    gone.addEventListener('abort', () => watch.close());
    response.writeHead(200, STREAM_HEADERS);
    try {
      await writePaced(exchange, envelope({ start: {} }));
      for (;;) {
        const leftMs = Math.min(quietMs, untilMs - this.clock.wallMs());
        const events = leftMs <= 0 ? [] : await watch.next(leftMs, this.clock);
        if (leftMs <= 0)
          throw new E2bError('deadline_exceeded', 'the watch has reached its timeout');
        if (events === 'closed') break;
        await writePaced(exchange, messages(events));
      }
    } finally {
      watch.close();
    }
    throw new E2bError('not_found', 'the watched directory is gone');
  }
}

function messages(events: readonly WatchEvent[]): Buffer {
  if (events.length === 0) return envelope({ keepalive: {} });
  return Buffer.concat(events.map((event) => envelope({ filesystem: event })));
}

/** Checks the entry itself behind all links of its folder. */
async function checkReal({ path, options }: Place, access: 'read' | 'write'): Promise<void> {
  const bytes = bytePath(path);
  if (path === '/') return;
  await withFolder(parentOf(bytes), options, async ({ real }) => {
    const entry = joinBytes(real, nameOf(bytes));
    if (access === 'read') options.access.check(entry, access);
    else options.access.checkTree(entry, access);
  });
}

/** A path that is not there counts as removed. */
async function remove({ path, options }: Place): Promise<void> {
  await removeTree(bytePath(path), { recursive: true, force: true }, options);
}

function missing(error: unknown): undefined {
  if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw error;
  return undefined;
}

/** The helpers for codex's files refuse some paths in words of their own. */
function translated(error: unknown, path: string): E2bError {
  if (error instanceof RpcError) return invalid(error.message);
  return fileError(error, path);
}
