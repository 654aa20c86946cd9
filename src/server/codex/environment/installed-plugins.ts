// The plugins that are installed in a codex home: `plugins/cache/<marketplace>/<plugin>/<version>/`, of each the newest.

import { basename, dirname } from 'node:path/posix';
import { errnoOf } from '../../../base/disk.ts';
import { openToRead, type PathOptions } from '../fs/opened-path.ts';
import { readUpTo } from '../fs/read.ts';
import { join, parseUri, type BytePath } from '../fs/uri.ts';
import { walk } from '../fs/walk.ts';
import { RpcError } from '../rpc.ts';
import { isMap } from './root-scan.ts';

export interface InstalledPlugin {
  readonly id: string;
  readonly version: string;
  readonly root: BytePath;
  readonly remoteId: string | null;
}

interface Installed {
  readonly plugins: readonly InstalledPlugin[];
  readonly warnings: readonly string[];
}

export const UNRESOLVED =
  'some capability locations could not be resolved; discovery may be incomplete';
const TOO_MANY = 'plugin cache traversal limit reached';

/** Far more than anyone installs. */
const CACHE_SCAN = {
  maxDepth: 2,
  maxDirectories: 5000,
  maxEntries: 20_000,
  followDirectorySymlinks: true,
  pruneHiddenDirectories: true,
} as const;
const MAX_RECORD_BYTES = 64 * 1024;
const REMOTE_RECORD = '.codex-remote-plugin-install.json';

const MARKETPLACE = /^[\w-]+$/;
const PLUGIN = /^[\w-]+(?:\.[\w-]+)*$/;
const VERSION = /^[\w.+-]+$/;
/** A folder of this name is what a person works on: it is taken before any version. */
const LOCAL = 'local';

export async function installedPlugins(cache: BytePath, options: PathOptions): Promise<Installed> {
  const warnings: string[] = [];
  const newest = new Map<BytePath, string>();
  const { entries, truncated } = await walk(cache, CACHE_SCAN, options);
  if (truncated) warnings.push(TOO_MANY);
  for (const { path: uri, kind } of entries) {
    const path = parseUri(uri);
    const folder = dirname(path);
    const version = basename(path);
    if (kind !== 'directory' || dirname(dirname(folder)) !== cache || !isPlugin(folder)) continue;
    if (!VERSION.test(version)) continue;
    const known = newest.get(folder);
    if (known === undefined || compareVersions(version, known) > 0) newest.set(folder, version);
  }
  const plugins: InstalledPlugin[] = [];
  for (const [folder, version] of newest) {
    const remoteId = await readRemoteId(join(folder, REMOTE_RECORD), options);
    if (remoteId === undefined && !warnings.includes(UNRESOLVED)) warnings.push(UNRESOLVED);
    plugins.push({
      id: `${basename(folder)}@${basename(dirname(folder))}`,
      version,
      root: join(folder, version),
      remoteId: remoteId ?? null,
    });
  }
  return { plugins: plugins.sort((a, b) => (a.id < b.id ? -1 : 1)), warnings };
}

function isPlugin(folder: BytePath): boolean {
  return PLUGIN.test(basename(folder)) && MARKETPLACE.test(basename(dirname(folder)));
}

/** Null if the plugin came from no server; undefined if the record cannot be used. */
async function readRemoteId(
  path: BytePath,
  options: PathOptions,
): Promise<string | null | undefined> {
  try {
    const file = await openToRead(path, options);
    try {
      const bytes = await readUpTo(file, MAX_RECORD_BYTES);
      const record: unknown = bytes === 'too long' ? undefined : JSON.parse(bytes.toString('utf8'));
      if (!isMap(record) || record['schema_version'] !== 1) return undefined;
      const id = record['remote_plugin_id'];
      return typeof id === 'string' && id.trim() !== '' ? id.trim() : undefined;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    if (error instanceof SyntaxError || error instanceof RpcError) return undefined;
    if (errnoOf(error) !== undefined) return undefined;
    throw error;
  }
}

/** By semantic versioning where both are such versions, else as text. */
function compareVersions(one: string, other: string): number {
  if (one === LOCAL || other === LOCAL) return Number(one === LOCAL) - Number(other === LOCAL);
  const [a, b] = [semver(one), semver(other)];
  const numbers =
    a && b ? compareLists(a.numbers, b.numbers) || comparePrereleases(a.pre, b.pre) : 0;
  return numbers || compare(one, other);
}

const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([\dA-Za-z.-]+))?(?:\+[\dA-Za-z.-]+)?$/;

function semver(text: string): { numbers: readonly string[]; pre: readonly string[] } | undefined {
  const [, major, minor, patch, pre] = SEMVER.exec(text) ?? [];
  if (major === undefined || minor === undefined || patch === undefined) return undefined;
  return { numbers: [major, minor, patch], pre: pre?.split('.') ?? [] };
}

/** A release comes after its pre-releases. */
function comparePrereleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  return compareLists(a, b);
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (const [index, one] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order = comparePart(one, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Numbers by value and before words; a number may have more digits than a double holds. */
function comparePart(one: string, other: string): number {
  const [digits, otherDigits] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (digits !== otherDigits) return digits ? -1 : 1;
  return (digits ? one.length - other.length : 0) || compare(one, other);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
