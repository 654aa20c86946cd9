// The folders and files of a sandbox as rules: paths without links, and what they are.

import { accessSync, constants, lstatSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { HoldfastError } from '../../protocol/errors.ts';
import type { FilePolicy, Sandbox } from '../../protocol/confinement/confinement.ts';
import type { LocalPaths } from '../start/mounts.ts';
import { accessTo, isWithin } from './bubblewrap.ts';

export interface FileRule {
  readonly path: string;
  readonly access: 'read' | 'write' | 'hide';
  readonly kind: 'folder' | 'file';
}

export interface PathSurroundings {
  readonly cwd: string;
  readonly home: string;
  /** Tells which paths may hang; these are not touched. */
  readonly local?: LocalPaths | undefined;
}

/** What every sandbox has of its own. The machine's would lead to the processes, the settings and the cgroups of others. */
const OWN_PLACES = ['/proc', '/sys', '/dev'];
/** In the /dev of every sandbox. */
const OWN_DEVICES = /^\/dev\/(?:null|zero|full|random|urandom|tty|ptmx|pts(?:\/.*)?)$/;
const SHARED_MEMORY = '/dev/shm';

/** The paths of a policy, absolute. */
export function absolutePolicy(policy: FilePolicy, { cwd, home }: PathSurroundings): FilePolicy {
  const absolute = (path: string): string => {
    if (path === '~') return home;
    return resolve(cwd, path.startsWith('~/') ? join(home, path.slice(2)) : path);
  };
  return {
    write: policy.write.map(absolute),
    ...(policy.hide && { hide: policy.hide.map(absolute) }),
    ...(policy.read && { read: policy.read.map(absolute) }),
  };
}

/** Without links; as it is, where it may hang or does not exist. */
export function realPathOf(path: string, local: LocalPaths | undefined): string {
  const [rule] = rulesFor('read', path, local) ?? [];
  return rule?.path ?? path;
}

/** `hidden`: our own folders, which no policy opens; `visible`: what of them can be read. They may be missing. */
export function fileRules(
  fs: NonNullable<Sandbox['fs']>,
  { hidden, visible }: { readonly hidden: readonly string[]; readonly visible: readonly string[] },
  surroundings: PathSurroundings,
): FileRule[] {
  const { local } = surroundings;
  const own = [
    ...hidden.flatMap((path) => rulesFor('hide', path, local) ?? []),
    ...visible.flatMap((path) => rulesFor('read', path, local) ?? []),
  ];
  if (fs === 'open') return withPins([{ path: '/', access: 'write', kind: 'folder' }, ...own]);
  if (fs === 'read-only') return [{ path: '/', access: 'read', kind: 'folder' }, ...own];
  const { write, hide = [], read = ['/'] } = absolutePolicy(fs, surroundings);
  const needed = (access: FileRule['access'], path: string): FileRule[] => {
    const rules = rulesFor(access, path, local);
    if (!rules) throw missing(access, path);
    return rules;
  };
  // Without the root there are no links, so a folder is also mounted at the name that was given.
  const linked = !read.includes('/');
  const opened = [
    ...read.flatMap((path) => rulesFor('read', path, local, linked) ?? []),
    ...write.flatMap((path) => needed('write', path)),
  ];
  for (const rule of opened) refuseOpening(rule, own);
  return withPins([
    ...opened.filter(({ path }) => !isOwnPlace(path)),
    ...hide.flatMap((path) => needed('hide', path)),
    ...own,
  ]);
}

/**
 * A folder around a hidden one could be renamed, and with it what lies below the cover, which the next sandbox would not find. A
 * mount point cannot, so these folders become mount points of their own.
 */
function withPins(rules: readonly FileRule[]): FileRule[] {
  const pins = rules
    .filter(({ access }) => access === 'hide')
    .flatMap(({ path }) => foldersAround(path))
    .filter((path) => accessTo(rules, path) === 'write' && isWritable(dirname(path)));
  const folders = Array.from(new Set(pins), (path): FileRule => ({
    path,
    access: 'write',
    kind: 'folder',
  }));
  return [...rules, ...folders];
}

/** Without the root. */
function foldersAround(path: string): string[] {
  const folder = dirname(path);
  return folder === '/' || folder === path ? [] : [folder, ...foldersAround(folder)];
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** A path below a hidden folder would be mounted over what hides it. */
function refuseOpening({ path, access }: FileRule, own: readonly FileRule[]): void {
  const isOurs = accessTo(own, path) === 'hide';
  if (isOurs || (access === 'write' && isOfMachine(path)))
    throw new HoldfastError(
      'sandbox_unenforceable',
      isOurs
        ? `${path} is in the state directory, which no sandbox shows. Use another path.`
        : `${path} cannot be made writable: a sandbox has its own /proc and /dev, and reads /sys only. Leave it out.`,
      { path },
    );
}

/** Of the machine, where a sandbox has its own. */
export function isOfMachine(path: string): boolean {
  return isOwnPlace(path) && !OWN_DEVICES.test(path);
}

function isOwnPlace(path: string): boolean {
  return OWN_PLACES.some((place) => isWithin(place, path)) && !isWithin(SHARED_MEMORY, path);
}

/** Undefined if there is no such path. */
function rulesFor(
  access: FileRule['access'],
  path: string,
  local: LocalPaths | undefined,
  linked = false,
): FileRule[] | undefined {
  const where = local?.find(path) ?? 'local';
  if (where === 'nothing') return undefined;
  // On a file system that may hang, bubblewrap finds out what it is.
  if (where === 'elsewhere') return [{ path, access, kind: 'folder' }];
  try {
    const real = realpathSync.native(path);
    const kind = lstatSync(real).isDirectory() ? 'folder' : 'file';
    const rule = { path: real, access, kind } as const;
    return linked && real !== path ? [rule, { ...rule, path }] : [rule];
  } catch {
    return undefined;
  }
}

function missing(access: FileRule['access'], path: string): HoldfastError {
  const verb = access === 'write' ? 'made writable' : 'hidden';
  const problem = `${path} does not exist or cannot be entered, so it cannot be ${verb}.`;
  return new HoldfastError('sandbox_unenforceable', problem, { path });
}
