// The sandbox policy of a codex client as a list of folders with an access each. The list decides what filesystem calls
// may touch and which mounts a command gets.

import { realpath } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import {
  bytePath,
  isWithin,
  join,
  nameOf,
  parentOf,
  parseUri,
  pathBytes,
  type BytePath,
} from '../fs/uri.ts';
import { answeringMounts } from '../fs/answering-mounts.ts';
import { Fields, invalid } from '../params.ts';
import type { RpcError } from '../rpc.ts';

export type Access = 'read' | 'write' | 'deny';

export interface Rule {
  /** Without links, as far as it exists. */
  readonly path: BytePath;
  readonly access: Access;
  /** The name in the request, if it contained a link. */
  readonly alias?: BytePath;
  /** May be missing. */
  readonly optional?: boolean;
}

/** `rules`: undefined if everything may be read and written. */
export interface SandboxPolicy {
  readonly kind: 'none' | 'external' | 'managed';
  readonly rules?: readonly Rule[];
  readonly network: boolean;
}

/** Hooks and settings that run or control code outside the sandbox: never writable through the folder they are in. */
const PROTECTED = ['.git', '.codex', '.agents'];

/** What a program needs to run at all. */
const MINIMAL =
  '/bin /sbin /usr /etc /lib /lib32 /lib64 /libx32 /nix/store /run/current-system/sw'.split(' ');

const NO_SANDBOX: SandboxPolicy = { kind: 'none', network: true };

export function unenforceable(): RpcError {
  return invalid('sandbox intent cannot be enforced on this executor');
}

/** `tmpdir`: the meaning of the special path of that name. */
export async function readPolicy(
  sandbox: unknown,
  tmpdir: string | undefined,
): Promise<SandboxPolicy> {
  if (sandbox === undefined || sandbox === null) return NO_SANDBOX;
  const context = new Fields(sandbox, 'struct WireFileSystemSandboxContext');
  const permissions = context.object('permissions', 'PermissionProfile');
  const kind = permissions.choice('type', ['managed', 'disabled', 'external']);
  context.text('windowsSandboxLevel');
  if (kind === 'disabled') return NO_SANDBOX;
  const network = permissions.choice('network', ['restricted', 'enabled']) === 'enabled';
  if (kind === 'external') return { kind, network };
  const files = permissions.object('file_system', 'FileSystem');
  if (files.choice('type', ['restricted', 'unrestricted']) === 'unrestricted')
    return { kind, network };
  const places = readPlaces(context, tmpdir);
  const requested = files.list('entries').flatMap((entry) => readEntry(entry, places));
  const rules = await Promise.all(
    requested.map(async (rule) => {
      const path = await withoutLinks(rule.path);
      return path === rule.path ? rule : { ...rule, path, alias: rule.path };
    }),
  );
  return { kind, network, rules: [...rules, ...protectedPaths(rules)] };
}

/** The deepest rule decides. Of two for the same folder "deny" wins, then "write". Undefined: no access. */
export function accessTo(rules: readonly Rule[], path: BytePath): Access | undefined {
  let best: Rule | undefined;
  for (const rule of rules) {
    if (!isWithin(rule.path, path)) continue;
    if (best === undefined || depth(rule) > depth(best) || outranks(rule, best)) best = rule;
  }
  return best?.access;
}

function outranks(rule: Rule, best: Rule): boolean {
  const rank = { read: 0, write: 1, deny: 2 };
  return depth(rule) === depth(best) && rank[rule.access] > rank[best.access];
}

function depth({ path }: Rule): number {
  return path === '/' ? 0 : path.length;
}

interface Places {
  readonly cwd: BytePath | undefined;
  readonly roots: readonly BytePath[];
  readonly tmpdir: BytePath | undefined;
}

/** Newer clients put cwd and roots into `policyContext`. */
function readPlaces(context: Fields, tmpdir: string | undefined): Places {
  const from = context.has('policyContext')
    ? context.object('policyContext', 'PolicyContext')
    : context;
  const cwd = from.optionalText('cwd');
  const roots = from.has('workspaceRoots') ? from.texts('workspaceRoots') : [];
  return {
    cwd: cwd === undefined ? undefined : parseUri(cwd),
    roots: roots.map(parseUri),
    tmpdir: tmpdir?.startsWith('/') ? bytePath(tmpdir) : undefined,
  };
}

function readEntry(value: unknown, places: Places): Rule[] {
  const entry = new Fields(value, 'struct FileSystemSandboxEntry');
  const word = entry.choice('access', ['read', 'write', 'deny', 'none']);
  const access = word === 'none' ? 'deny' : word;
  const optional = entry.optionalText('missing_path_behavior') === 'skip';
  const path = entry.object('path', 'FileSystemPath');
  const type = path.choice('type', ['path', 'glob_pattern', 'special']);
  // What a pattern matches changes while the command runs, which a list of folders cannot express.
  if (type === 'glob_pattern') throw unenforceable();
  const found =
    type === 'path'
      ? [parseUri(path.text('path'))]
      : specialPaths(path.object('value', 'FileSystemSpecialPath'), places);
  return found.map((path) => ({ path, access, ...(optional && { optional }) }));
}

function specialPaths(special: Fields, places: Places): BytePath[] {
  const kinds = [
    ...(['root', 'minimal', 'current_working_directory', 'project_roots'] as const),
    ...(['tmpdir', 'slash_tmp', 'unknown'] as const),
  ];
  const kind = special.choice('kind', kinds);
  if (kind === 'unknown') throw unenforceable();
  const known = {
    root: ['/'],
    minimal: MINIMAL,
    current_working_directory: places.cwd === undefined ? [] : [places.cwd],
    project_roots: places.roots,
    tmpdir: places.tmpdir === undefined ? [] : [places.tmpdir],
    slash_tmp: ['/tmp'],
  }[kind];
  const below = special.optionalText('subpath');
  if (below === undefined) return [...known];
  const parts = bytePath(below).split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) throw unenforceable();
  return known.map((path) => parts.reduce(join, path));
}

function protectedPaths(rules: readonly Rule[]): Rule[] {
  const named = new Set(rules.map(({ path }) => path));
  return rules
    .filter(({ access, path }) => access === 'write' && path !== '/')
    .flatMap(({ path }) => PROTECTED.map((name) => join(path, name)))
    .filter((path) => !named.has(path))
    .map((path) => ({ path, access: 'read', optional: true }));
}

/** For a path that does not exist yet, the existing part is resolved. */
export async function withoutLinks(path: BytePath): Promise<BytePath> {
  try {
    await answeringMounts.check(path);
    return (await realpath(pathBytes(path), 'buffer')).toString('latin1');
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return path === '/' ? path : join(await withoutLinks(parentOf(path)), nameOf(path));
  }
}
