// The command line of bubblewrap for a sandbox: which paths are visible and writable, and whether there is a network. The
// command also gets its own process numbers, so that it can neither see nor signal processes outside.

import type { FileRule } from './file-rules.ts';

export interface BubblewrapRequest {
  readonly program: string;
  readonly rules: readonly FileRule[];
  readonly network: boolean;
  readonly cwd: string;
  /** Set only for the command: variables that would act on bubblewrap itself. */
  readonly env: readonly string[];
  readonly argv: readonly string[];
  /** The command's file. */
  readonly file: string;
  /**
   * Runs first inside (native/begin.c). A signal goes to the whole process group, and bubblewrap would end at once and take
   * the command with it. So bubblewrap starts with signals ignored, and this gives the command the defaults back.
   */
  readonly begin?: string | undefined;
  /**
   * Rules of a sandbox around this one. bubblewrap resolves paths itself, later than we did. So where a command could put a
   * link in place of a path that its owner asks for, what is hidden is covered before that path is resolved.
   */
  readonly around?: readonly FileRule[] | undefined;
}

/** Never from a path that a client or a workspace could write to. */
export const BUBBLEWRAP_PLACES = [
  '/usr/bin/bwrap',
  '/bin/bwrap',
  '/usr/local/bin/bwrap',
  '/run/current-system/sw/bin/bwrap',
];
const ALWAYS = '--die-with-parent --unshare-pid --unshare-ipc --cap-drop ALL'.split(' ');
const OWN_USERS = '--unshare-user';
/** For root, a new /proc would have the machine's settings writable, such as the program that takes core dumps. */
const SETTINGS = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus'].flatMap((path) => [
  '--ro-bind-try',
  path,
  path,
]);
const OWN_FILES = [...'--dev /dev --proc /proc'.split(' '), ...SETTINGS];
/** Through the files of cgroups a command could end the processes of others. */
const GROUPS = '--ro-bind-try /sys /sys'.split(' ');

export function bubblewrapArgs(request: BubblewrapRequest): string[] {
  const { program, rules, network, cwd, env, argv, file, begin, around } = request;
  const isInner = around !== undefined && isRoot();
  return [
    ...(around ? outerArgs(program, withBegin(around, begin)) : []),
    program,
    ...ALWAYS,
    // Root keeps the user namespace of the outer one: in another, the covered settings would forbid a new /proc.
    ...(isInner ? [] : [OWN_USERS]),
    ...(network ? [] : ['--unshare-net']),
    ...mountArgs(withBegin(rules, begin)),
    '--chdir',
    cwd,
    ...env.flatMap((variable) => {
      const at = variable.indexOf('=');
      return ['--setenv', variable.slice(0, at), variable.slice(at + 1)];
    }),
    '--',
    ...(begin === undefined ? [file, ...argv.slice(1)] : [begin, file, ...argv]),
  ];
}

/** The machine's /dev and /proc: the inner one makes its own. */
const OUTER_FILES = '--dev-bind /dev /dev --bind /proc /proc'.split(' ');

function outerArgs(program: string, rules: readonly FileRule[]): string[] {
  const ordered = orderedRules(rules);
  const root = ordered.find(({ path }) => path === '/');
  return [
    program,
    '--die-with-parent',
    OWN_USERS,
    ...(isRoot() ? ['--cap-add', 'ALL'] : []),
    ...(root ? [...mountArg(root, ordered), ...GROUPS] : ['--tmpfs', '/']),
    ...OUTER_FILES,
    ...(isRoot() ? SETTINGS : []),
    ...(root ? [] : ['--ro-bind', program, program]),
    ...mounted(ordered.filter(({ path }) => path !== '/')),
    '--',
  ];
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function withBegin(rules: readonly FileRule[], begin: string | undefined): readonly FileRule[] {
  if (begin === undefined || ['read', 'write'].includes(accessTo(rules, begin) ?? '')) return rules;
  return [...rules, { path: begin, access: 'read', kind: 'file' }];
}

const RANK = { read: 0, write: 1, hide: 2 };

/** The deepest rule decides. Undefined: the path is not visible. */
export function accessTo(rules: readonly FileRule[], path: string): FileRule['access'] | undefined {
  let best: FileRule | undefined;
  for (const rule of rules) {
    if (!isWithin(rule.path, path)) continue;
    const deeper = best === undefined || depth(rule.path) > depth(best.path);
    if (deeper || (best?.path === rule.path && RANK[rule.access] > RANK[best.access])) best = rule;
  }
  return best?.access;
}

export function isWithin(folder: string, path: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`);
}

/** Outer folders first: later mounts cover earlier ones. */
function orderedRules(rules: readonly FileRule[]): FileRule[] {
  const decided = new Map<string, FileRule>();
  for (const rule of rules) {
    const before = decided.get(rule.path);
    if (!before || RANK[rule.access] > RANK[before.access]) decided.set(rule.path, rule);
  }
  return [...decided.values()].sort((a, b) => depth(a.path) - depth(b.path));
}

function mounted(rules: readonly FileRule[]): string[] {
  return [
    ...rules.flatMap((rule) => mountArg(rule, rules)),
    ...rules.filter(isCovered).flatMap(({ path }) => ['--remount-ro', path]),
  ];
}

function mountArgs(rules: readonly FileRule[]): string[] {
  const ordered = orderedRules(rules);
  const [first, ...rest] = ordered;
  const root = first?.path === '/' ? first : undefined;
  return [
    ...(root ? mountArg(root, ordered) : ['--tmpfs', '/']),
    ...(root ? GROUPS : []),
    ...OWN_FILES,
    ...mounted(root ? rest : ordered),
    // Without a root mount the sandbox's root is a tmpfs, which is made read-only.
    ...(root ? [] : ['--remount-ro', '/']),
  ];
}

function mountArg(rule: FileRule, all: readonly FileRule[]): string[] {
  const { path, access } = rule;
  if (access === 'read') return ['--ro-bind', path, path];
  if (access === 'write') return ['--bind', path, path];
  if (!isCovered(rule)) return ['--ro-bind', '/dev/null', path];
  // It can be passed only if something in it is visible, and never listed.
  const isPassed = all.some((each) => each.path !== path && isWithin(path, each.path));
  return ['--perms', isPassed ? '111' : '000', '--tmpfs', path];
}

function isCovered({ access, kind }: FileRule): boolean {
  return access === 'hide' && kind === 'folder';
}

function depth(path: string): number {
  return path === '/' ? 0 : path.split('/').length;
}
