// capabilities/discoverV2: the plugins and skills that are installed for the user of this server. Those of a project are
// not among them, clients find them with fs/* and capabilityRoots/discoverV1.

import { basename, dirname } from 'node:path/posix';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { errnoOf } from '../../../base/disk.ts';
import { accessPolicyOf } from '../fs/access-policy.ts';
import { withOpened, type PathOptions } from '../fs/opened-path.ts';
import { bytePath, formatUri, isWithin, join, parseUri, type BytePath } from '../fs/uri.ts';
import { Fields } from '../params.ts';
import type { CodexSurroundings, MethodTable } from '../rpc.ts';
import { codexHomeOf, SYSTEM_FOLDER } from './codex-home.ts';
import { installedPlugins, UNRESOLVED, type InstalledPlugin } from './installed-plugins.ts';
import {
  isMap,
  MAX_ANSWER_BYTES,
  scanRoot,
  type AnswerBudget,
  type CapabilityFile,
  type PluginFiles,
  type SkillFiles,
} from './root-scan.ts';
import { readFrontMatter, readSkillSettings } from './skill-metadata.ts';

/** One for each root of which something was left out: codex's words. */
const INCOMPLETE = 'some capability metadata could not be loaded; discovery may be incomplete';

export function installedMethods(surroundings: CodexSurroundings): MethodTable {
  return {
    'capabilities/discoverV2': async (params, session) => {
      const fields = new Fields(params, 'struct DiscoverV2CapabilitiesRequest');
      parseUri(fields.text('cwd'));
      const { env } = surroundings;
      const access = await accessPolicyOf(session, fields.raw('sandbox'), env['TMPDIR']);
      return new Discovery(surroundings, { access, follow: true }).answer();
    },
  };
}

class Discovery {
  private readonly surroundings: CodexSurroundings;
  private readonly options: PathOptions;
  private readonly budget: AnswerBudget = { bytes: MAX_ANSWER_BYTES };
  private readonly warnings: string[] = [];

  constructor(surroundings: CodexSurroundings, options: PathOptions) {
    this.surroundings = surroundings;
    this.options = options;
  }

  async answer(): Promise<unknown> {
    const { userHome } = this.surroundings;
    const codexHome = bytePath(codexHomeOf(this.surroundings));
    const plugins = await this.plugins(join(codexHome, 'plugins/cache'));
    const skills: unknown[] = [];
    for (const [id, root] of [
      ['codex-home-skills', join(codexHome, 'skills')],
      ['user-agent-skills', join(bytePath(userHome), '.agents/skills')],
      ['system-skills', join(SYSTEM_FOLDER, 'skills')],
    ] as const)
      skills.push(...(await this.skillsOf(id, root)));
    return { plugins, skills, warnings: this.warnings };
  }

  private async plugins(cache: BytePath): Promise<unknown[]> {
    if (!(await this.isFolder(cache))) return [];
    const { plugins, warnings } = await installedPlugins(cache, this.options);
    this.warnings.push(...warnings);
    const described: unknown[] = [];
    for (const plugin of plugins) described.push(...(await this.describe(plugin)));
    return described;
  }

  private async describe({ id, version, root, remoteId }: InstalledPlugin): Promise<unknown[]> {
    const uri = formatUri(root);
    const scan = await scanRoot({ uri, path: root, options: this.options }, this.budget);
    const { plugin } = scan;
    const manifest = plugin && readManifest(plugin.manifest);
    if (!plugin || !manifest) {
      this.warnings.push(INCOMPLETE);
      return [];
    }
    const { files, complete } = filesOf(plugin, manifest);
    const skills = await readSkills(scan.skills, scan.namespaceManifests);
    if (!complete || !skills.complete || scan.warnings.length > 0) this.warnings.push(INCOMPLETE);
    const { displayName } = manifest;
    return [
      { id, displayName, remotePluginId: remoteId, version, root: uri, files, skills: skills.read },
    ];
  }

  private async skillsOf(id: string, root: BytePath): Promise<unknown[]> {
    if (!(await this.isFolder(root))) return [];
    const uri = formatUri(root);
    const scan = await scanRoot({ uri, path: root, options: this.options }, this.budget);
    const { read, complete } = await readSkills(scan.skills, scan.namespaceManifests);
    if (!complete || scan.warnings.length > 0 || scan.error !== null)
      this.warnings.push(INCOMPLETE);
    const discoveryRoot = { id, path: uri };
    return read.map((skill) => ({ ...skill, discoveryRoot }));
  }

  /** A place that cannot be looked into adds a warning; one that does not exist is none. */
  private async isFolder(path: BytePath): Promise<boolean> {
    try {
      return await withOpened(path, this.options, async ({ stats }) => stats.isDirectory());
    } catch (error) {
      const code = errnoOf(error);
      if (code === undefined) throw error;
      if (code !== 'ENOENT' && code !== 'ENOTDIR') this.warnings.push(UNRESOLVED);
      return false;
    }
  }
}

interface Manifest {
  /** As the skills of the plugin are prefixed with. */
  readonly name: string;
  readonly displayName: string;
  readonly mcpServers: unknown;
}

/** Undefined if a field that codex reads has the wrong type. */
function readManifest(file: CapabilityFile): Manifest | undefined {
  const said = objectOf(file.contents);
  const { interface: shown = {}, apps = null, mcpServers } = said ?? {};
  const name = said && nameIn(said, file);
  const display = isMap(shown) ? (shown['displayName'] ?? '') : shown === null ? '' : undefined;
  if (name === undefined || typeof display !== 'string') return undefined;
  if (apps !== null && typeof apps !== 'string') return undefined;
  return { name, displayName: display.trim() || name, mcpServers };
}

function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The name of the plugin's folder, if the manifest has none. */
function nameIn(
  { name = '' }: Readonly<Record<string, unknown>>,
  { path }: CapabilityFile,
): string | undefined {
  if (typeof name !== 'string') return undefined;
  return name.trim() === '' ? basename(dirname(dirname(parseUri(path)))) : name;
}

/** Servers that the manifest itself defines become a file of the answer. A file that it names must exist. */
function filesOf(
  plugin: PluginFiles,
  { mcpServers }: Manifest,
): { readonly files: PluginFiles; readonly complete: boolean } {
  if (!isMap(mcpServers))
    return { files: plugin, complete: typeof mcpServers !== 'string' || plugin.mcpConfig !== null };
  const { path } = plugin.manifest;
  const mcpConfig = { path, contents: JSON.stringify(mcpServers) };
  return { files: { ...plugin, mcpConfig }, complete: true };
}

async function readSkills(
  skills: readonly SkillFiles[],
  manifests: readonly CapabilityFile[],
): Promise<{ readonly read: readonly object[]; readonly complete: boolean }> {
  const prefixes = manifests.flatMap((file) => {
    const said = objectOf(file.contents);
    const name = said && nameIn(said, file);
    return name === undefined ? [] : [{ folder: dirname(dirname(parseUri(file.path))), name }];
  });
  const read: object[] = [];
  for (const { instructions, metadata } of skills) {
    // Parsing takes the processor; other clients have a turn in between.
    await nextTurn();
    const front = await readFrontMatter(instructions.contents);
    if (!front) continue;
    const path = parseUri(instructions.path);
    const own = front.name ?? Buffer.from(basename(dirname(path)), 'latin1').toString('utf8');
    // The innermost plugin around the skill gives it its prefix; manifests come from the outside in.
    const prefix = prefixes.findLast(({ folder }) => isWithin(folder, path));
    read.push({
      name: prefix === undefined ? own : `${prefix.name}:${own}`,
      description: front.description,
      shortDescription: front.shortDescription,
      path: instructions.path,
      ...(await readSkillSettings(metadata?.contents ?? '')),
    });
  }
  return { read, complete: read.length === skills.length };
}
