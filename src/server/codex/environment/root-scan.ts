// Finds the plugin and the skills in one folder, and reads their files, within limits and as an access policy allows.

import { isUtf8 } from 'node:buffer';
import { basename, dirname } from 'node:path/posix';
import { errnoOf } from '../../../base/disk.ts';
import { fsError, osText } from '../fs/error.ts';
import { openToRead, withOpened, type PathOptions } from '../fs/opened-path.ts';
import { readUpTo } from '../fs/read.ts';
import { formatUri, join, parseUri, type BytePath } from '../fs/uri.ts';
import { walk } from '../fs/walk.ts';
import { RpcError } from '../rpc.ts';

/** The limits of codex's server. */
const MAX_FILE_BYTES = 1024 * 1024;
const SCAN = { maxDepth: 6, maxDirectories: 2000, maxEntries: 20_000 } as const;
/** For all roots of an answer together: as JSON still below what the real client accepts as one message. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

const SKILL_FILE = 'SKILL.md';
const SKILL_METADATA = 'agents/openai.yaml';
/** The first that exists counts. */
const MANIFEST_FOLDERS = ['.codex-plugin', '.claude-plugin', '.cursor-plugin'];
const MANIFEST_FILE = 'plugin.json';

export interface RootRequest {
  readonly uri: string;
  readonly path: BytePath | RpcError;
  readonly options: PathOptions;
}

export interface CapabilityFile {
  readonly path: string;
  readonly contents: string;
}

export interface PluginFiles {
  readonly manifest: CapabilityFile;
  readonly mcpConfig: CapabilityFile | null;
  readonly appsConfig: CapabilityFile | null;
}

export interface SkillFiles {
  readonly instructions: CapabilityFile;
  readonly metadata: CapabilityFile | null;
}

interface Found {
  readonly plugin: PluginFiles | null;
  readonly skills: readonly SkillFiles[];
  readonly namespaceManifests: readonly CapabilityFile[];
}

interface ScannedRoot extends Found {
  readonly path: string;
  readonly warnings: readonly string[];
  readonly error: string | null;
}

/** How much of an answer may still be filled. */
export interface AnswerBudget {
  bytes: number;
}

export function scanRoot(request: RootRequest, budget: AnswerBudget): Promise<ScannedRoot> {
  return new RootScan(request, budget).answer();
}

const NOTHING: Found = { plugin: null, skills: [], namespaceManifests: [] };

class RootScan {
  private readonly request: RootRequest;
  private readonly budget: AnswerBudget;
  private readonly warnings: string[] = [];

  constructor(request: RootRequest, budget: AnswerBudget) {
    this.request = request;
    this.budget = budget;
  }

  async answer(): Promise<ScannedRoot> {
    const { uri, path, options } = this.request;
    const toAnswer = (found: Found, error: string | null): ScannedRoot => ({
      path: uri,
      ...found,
      warnings: this.warnings,
      error,
    });
    try {
      if (path instanceof RpcError) throw path;
      const isFolder = await withOpened(path, options, async ({ stats }) => stats.isDirectory());
      if (!isFolder) return toAnswer(NOTHING, `capability root ${uri} is not a directory`);
      return toAnswer(await this.scan(path), null);
    } catch (error) {
      const problem = fsError(error);
      if (!problem) throw error;
      return toAnswer(NOTHING, `failed to inspect capability root ${uri}: ${problem.message}`);
    }
  }

  private async scan(root: BytePath): Promise<Found> {
    const options = { ...SCAN, followDirectorySymlinks: true, pruneHiddenDirectories: false };
    const { entries, truncated } = await walk(root, options, this.request.options);
    const plugin = await this.plugin(root);
    const paths = entries
      .map(({ path, kind }) => ({ path: parseUri(path), kind }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    const skills: SkillFiles[] = [];
    for (const { path, kind } of paths)
      if (kind === 'file' && basename(path) === SKILL_FILE)
        skills.push(...(await this.skill(path)));
    const homes = paths
      .filter(({ path, kind }) => kind === 'directory' && MANIFEST_FOLDERS.includes(basename(path)))
      .map(({ path }) => dirname(path));
    const namespaceManifests: CapabilityFile[] = [];
    for (const folder of new Set([root, ...homes]))
      namespaceManifests.push(...asList(await this.manifest(folder)));
    if (truncated) this.warnTruncated();
    return { plugin, skills, namespaceManifests };
  }

  private async skill(path: BytePath): Promise<SkillFiles[]> {
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

  private async plugin(root: BytePath): Promise<PluginFiles | null> {
    const manifest = await this.manifest(root);
    if (!manifest) return null;
    const said = objectIn(manifest.contents);
    const config = async (key: string, usual: string): Promise<CapabilityFile | null> => {
      const configPath = this.configPath(said[key], key, manifest);
      return (
        (await this.read(configPath === undefined ? join(root, usual) : join(root, configPath))) ??
        null
      );
    };
    // Servers defined in the manifest itself are in no file.
    const inside = typeof said['mcpServers'] === 'object' && isMap(said['mcpServers']);
    const mcpConfig = inside ? null : await config('mcpServers', '.mcp.json');
    return { manifest, mcpConfig, appsConfig: await config('apps', '.app.json') };
  }

  /** A path in a manifest, relative to its root and inside of it. Undefined: not usable. */
  private configPath(value: unknown, key: string, { path }: CapabilityFile): string | undefined {
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

  /** Undefined if there is no such file, or if it is unusable, which adds a warning. */
  private async read(path: BytePath): Promise<CapabilityFile | undefined> {
    const uri = formatUri(path);
    const bytes = await this.bytesOf(path, uri);
    if (bytes === undefined) return undefined;
    if (bytes === 'too long')
      this.warnings.push(`capability file ${uri} exceeds the ${MAX_FILE_BYTES}-byte limit`);
    else if (!isUtf8(bytes))
      this.warnings.push(`capability file ${uri} is not UTF-8: invalid utf-8 sequence`);
    else if (bytes.length > this.budget.bytes) this.warnTruncated();
    else {
      this.budget.bytes -= bytes.length;
      return { path: uri, contents: bytes.toString('utf8') };
    }
    return undefined;
  }

  private async bytesOf(path: BytePath, uri: string): Promise<Buffer | 'too long' | undefined> {
    try {
      const file = await openToRead(path, this.request.options);
      try {
        return await readUpTo(file, MAX_FILE_BYTES);
      } finally {
        await file.close();
      }
    } catch (error) {
      const code = errnoOf(error);
      // A path that is not a regular file counts as missing.
      if (error instanceof RpcError || code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      if (code === undefined) throw error;
      this.warnings.push(`failed to read capability file ${uri}: ${osText(code)}`);
      return undefined;
    }
  }

  private warnTruncated(): void {
    const warning = `capability scan reached its traversal limit (root: ${this.request.uri})`;
    if (!this.warnings.includes(warning)) this.warnings.push(warning);
  }
}

function asList<T>(found: T | undefined): T[] {
  return found === undefined ? [] : [found];
}

/** A manifest that is not JSON is returned, but sets nothing. */
function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) ? value : {};
  } catch {
    return {};
  }
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
