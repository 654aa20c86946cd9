// capabilityRoots/discoverV1: the plugin and the skills in folders that a client names, with the files that describe them.
// What they mean is the client's business; here they are found, read within bounds, and told.

import { isUtf8 } from 'node:buffer';
import { basename, dirname } from 'node:path/posix';
import { errnoOf } from '../../../base/disk.ts';
import { fsError, osText } from '../fs/error.ts';
import { list } from '../fs/params.ts';
import { openToRead, withPlace, type Way } from '../fs/place.ts';
import { reachOf } from '../fs/reach.ts';
import { readUpTo } from '../fs/read.ts';
import { formatUri, join, parseUri, type BytePath } from '../fs/uri.ts';
import { walk } from '../fs/walk.ts';
import { Fields } from '../params.ts';
import {
  RpcError,
  rpcCodes,
  type CodexSession,
  type CodexSurroundings,
  type MethodTable,
} from '../rpc.ts';

/** The peer's numbers. */
const MOST_ROOTS = 128;
const MOST_FILE_BYTES = 1024 * 1024;
const SCAN = { maxDepth: 6, maxDirectories: 2000, maxEntries: 20_000 } as const;
/** Of all roots together: as JSON still below what the real client takes as one message. */
const MOST_ANSWER_BYTES = 16 * 1024 * 1024;

const SKILL_FILE = 'SKILL.md';
const SKILL_METADATA = 'agents/openai.yaml';
/** The first that is there counts. */
const MANIFEST_FOLDERS = ['.codex-plugin', '.claude-plugin'];
const MANIFEST_FILE = 'plugin.json';

export function capabilityMethods({ env }: CodexSurroundings): MethodTable {
  return {
    'capabilityRoots/discoverV1': async (params, session) => {
      const roots = list(new Fields(params, 'struct CapabilityRootsDiscoverParams'), 'roots');
      const asked = await Promise.all(roots.map((root) => rootAsked(root, session, env['TMPDIR'])));
      if (asked.length > MOST_ROOTS)
        throw new RpcError(
          rpcCodes.refused,
          `capability root discovery accepts at most ${MOST_ROOTS} roots`,
        );
      const room = { bytes: MOST_ANSWER_BYTES };
      const found: unknown[] = [];
      for (const root of asked) found.push(await new RootScan(root, room).answer());
      return { roots: found };
    },
  };
}

interface Asked {
  readonly id: string;
  readonly uri: string;
  readonly path: BytePath | RpcError;
  readonly way: Way;
}

async function rootAsked(
  root: unknown,
  session: CodexSession,
  tmpdir: string | undefined,
): Promise<Asked> {
  const fields = new Fields(root, 'struct WireCapabilityRootDiscoverRequest');
  const [id, uri] = [fields.text('id'), fields.text('path')];
  const reach = await reachOf(session, fields.raw('sandbox'), tmpdir);
  return { id, uri, path: ownPath(uri), way: { reach, follow: true } };
}

/** A root on another machine is a problem of that root only. */
function ownPath(uri: string): BytePath | RpcError {
  try {
    return parseUri(uri);
  } catch (error) {
    if (error instanceof RpcError && error.code === rpcCodes.refused) return error;
    throw error;
  }
}

interface CapabilityFile {
  readonly path: string;
  readonly contents: string;
}

interface Found {
  readonly plugin: unknown;
  readonly skills: readonly unknown[];
  readonly namespaceManifests: readonly CapabilityFile[];
}

const NOTHING: Found = { plugin: null, skills: [], namespaceManifests: [] };

class RootScan {
  private readonly asked: Asked;
  private readonly room: { bytes: number };
  private readonly warnings: string[] = [];

  constructor(asked: Asked, room: { bytes: number }) {
    this.asked = asked;
    this.room = room;
  }

  async answer(): Promise<unknown> {
    const { id, uri, path, way } = this.asked;
    const told = (found: Found, error: string | null): unknown => ({
      id,
      path: uri,
      ...found,
      warnings: this.warnings,
      error,
    });
    try {
      if (path instanceof RpcError) throw path;
      const isFolder = await withPlace(path, way, async ({ stats }) => stats.isDirectory());
      if (!isFolder) return told(NOTHING, `capability root ${uri} is not a directory`);
      return told(await this.scan(path), null);
    } catch (error) {
      const problem = fsError(error);
      if (!problem) throw error;
      return told(NOTHING, `failed to inspect capability root ${uri}: ${problem.message}`);
    }
  }

  private async scan(root: BytePath): Promise<Found> {
    const options = { ...SCAN, followDirectorySymlinks: true, pruneHiddenDirectories: false };
    const { entries, truncated } = await walk(root, options, this.asked.way);
    const plugin = await this.plugin(root);
    const paths = entries
      .map(({ path, kind }) => ({ path: parseUri(path), kind }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    const skills: unknown[] = [];
    for (const { path, kind } of paths)
      if (kind === 'file' && basename(path) === SKILL_FILE)
        skills.push(...(await this.skill(path)));
    const homes = paths
      .filter(({ path, kind }) => kind === 'directory' && MANIFEST_FOLDERS.includes(basename(path)))
      .map(({ path }) => dirname(path));
    const namespaceManifests: CapabilityFile[] = [];
    for (const folder of new Set([root, ...homes]))
      namespaceManifests.push(...listed(await this.manifest(folder)));
    if (truncated) this.cut();
    return { plugin, skills, namespaceManifests };
  }

  private async skill(path: BytePath): Promise<unknown[]> {
    const instructions = await this.read(path);
    if (!instructions) return [];
    const metadata = await this.read(join(dirname(path), SKILL_METADATA));
    return [{ instructions, metadata: metadata ?? null }];
  }

  private async manifest(folder: BytePath): Promise<CapabilityFile | undefined> {
    for (const name of MANIFEST_FOLDERS) {
      const found = await this.read(join(join(folder, name), MANIFEST_FILE));
      if (found) return found;
    }
    return undefined;
  }

  private async plugin(root: BytePath): Promise<unknown> {
    const manifest = await this.manifest(root);
    if (!manifest) return null;
    const said = objectIn(manifest.contents);
    const config = async (key: string, usual: string): Promise<CapabilityFile | null> => {
      const named = this.named(said[key], key, manifest);
      return (await this.read(named === undefined ? join(root, usual) : join(root, named))) ?? null;
    };
    // Servers that stand in the manifest itself are in no file.
    const inside = typeof said['mcpServers'] === 'object' && isMap(said['mcpServers']);
    const mcpConfig = inside ? null : await config('mcpServers', '.mcp.json');
    return { manifest, mcpConfig, appsConfig: await config('apps', '.app.json') };
  }

  /** A path that a manifest gives, relative to its root and inside of it. Undefined: it says nothing of use. */
  private named(value: unknown, key: string, { path }: CapabilityFile): string | undefined {
    if (typeof value !== 'string') return undefined;
    const ignored = (reason: string): undefined => {
      this.warnings.push(`ignoring ${key} in ${path}: ${reason}`);
      return undefined;
    };
    if (!value.startsWith('./')) return ignored('path must start with `./`');
    const parts = Buffer.from(value.slice(2), 'utf8').toString('latin1').split('/');
    const below = parts.filter((part) => part !== '' && part !== '.');
    if (below.length === 0 || below.includes('..') || value.includes('\0'))
      return ignored('path must remain below the capability root');
    return below.join('/');
  }

  /** Undefined when there is no such file, or none that can be told; the second is warned of. */
  private async read(path: BytePath): Promise<CapabilityFile | undefined> {
    const uri = formatUri(path);
    const bytes = await this.bytesOf(path, uri);
    if (bytes === undefined) return undefined;
    if (bytes === 'too long')
      this.warnings.push(`capability file ${uri} exceeds the ${MOST_FILE_BYTES}-byte limit`);
    else if (!isUtf8(bytes))
      this.warnings.push(`capability file ${uri} is not UTF-8: invalid utf-8 sequence`);
    else if (bytes.length > this.room.bytes) this.cut();
    else {
      this.room.bytes -= bytes.length;
      return { path: uri, contents: bytes.toString('utf8') };
    }
    return undefined;
  }

  private async bytesOf(path: BytePath, uri: string): Promise<Buffer | 'too long' | undefined> {
    try {
      const file = await openToRead(path, this.asked.way);
      try {
        return await readUpTo(file, MOST_FILE_BYTES);
      } finally {
        await file.close();
      }
    } catch (error) {
      const code = errnoOf(error);
      // What is no regular file is refused by its kind, which counts as none being there.
      if (error instanceof RpcError || code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      if (code === undefined) throw error;
      this.warnings.push(`failed to read capability file ${uri}: ${osText(code)}`);
      return undefined;
    }
  }

  private cut(): void {
    const warning = `capability scan reached its traversal limit (root: ${this.asked.uri})`;
    if (!this.warnings.includes(warning)) this.warnings.push(warning);
  }
}

function listed<T>(found: T | undefined): T[] {
  return found === undefined ? [] : [found];
}

/** A manifest that is no JSON says nothing, and is told all the same. */
function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) ? value : {};
  } catch {
    return {};
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
