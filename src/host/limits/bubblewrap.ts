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
}

/** Never from a path that a client or a workspace could write to. */
export const BUBBLEWRAP_PLACES = [
  '/usr/bin/bwrap',
  '/bin/bwrap',
  '/usr/local/bin/bwrap',
  '/run/current-system/sw/bin/bwrap',
];
const ALWAYS = '--die-with-parent --unshare-user --unshare-pid --unshare-ipc --cap-drop ALL'.split(
  ' ',
);
/** For root, a new /proc would have the machine's settings writable, such as the program that takes core dumps. */
const OWN_FILES = [
  ...'--dev /dev --proc /proc'.split(' '),
  ...['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus'].flatMap((path) => [
    '--ro-bind-try',
    path,
    path,
  ]),
];

export function bubblewrapArgs(request: BubblewrapRequest): string[] {
  const { program, rules, network, cwd, env, argv, file, begin } = request;
  return [
    program,
    ...ALWAYS,
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
function mountArgs(rules: readonly FileRule[]): string[] {
  const decided = new Map<string, FileRule>();
  for (const rule of rules) {
    const before = decided.get(rule.path);
    if (!before || RANK[rule.access] > RANK[before.access]) decided.set(rule.path, rule);
  }
  const ordered = [...decided.values()].sort((a, b) => depth(a.path) - depth(b.path));
  const [first, ...rest] = ordered;
  const root = first?.path === '/' ? first : undefined;
  return [
    ...(root ? mountArg(root, ordered) : ['--tmpfs', '/']),
    // Through the files of cgroups a command could end the processes of others.
    ...(root ? ['--ro-bind-try', '/sys', '/sys'] : []),
    ...OWN_FILES,
    ...(root ? rest : ordered).flatMap((rule) => mountArg(rule, ordered)),
    ...ordered.filter(isCovered).flatMap(({ path }) => ['--remount-ro', path]),
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
