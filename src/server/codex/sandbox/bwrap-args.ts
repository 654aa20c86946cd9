// The command line of bubblewrap for a policy: which paths are visible and writable, and whether there is a network.

import { nativeText, type BytePath } from '../fs/uri.ts';
import type { Access } from './policy.ts';

export interface Mount {
  readonly path: BytePath;
  readonly access: Access;
  readonly kind: 'folder' | 'file';
}

export interface Confinement {
  readonly program: string;
  readonly mounts: readonly Mount[];
  readonly network: boolean;
  /** Set only for the command. */
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
  readonly arg0: string | undefined;
  /** `/usr/bin/env` is visible in the sandbox, so that it can restore SIGINT for the command. */
  readonly restoresInterrupt: boolean;
}

/**
 * An interrupt goes to the whole process group. bubblewrap would end at once and take the command with it, so it starts
 * with SIGINT ignored, and the command gets the default back.
 */
const IGNORE_INTERRUPT = ['/bin/sh', '-c', 'trap "" INT; exec "$@"', 'sandbox'];
const RESTORE_INTERRUPT = ['/usr/bin/env', '--default-signal=INT', '--'];

export function bubblewrapArgs(confinement: Confinement): string[] {
  const { program, mounts, network, env, argv, arg0 } = confinement;
  // `arg0` would go to `env` instead of the command.
  const restoresInterrupt = confinement.restoresInterrupt && arg0 === undefined;
  return [
    ...(restoresInterrupt ? IGNORE_INTERRUPT : []),
    program,
    '--die-with-parent',
    '--unshare-user',
    '--unshare-pid',
    '--unshare-ipc',
    ...(network ? [] : ['--unshare-net']),
    '--cap-drop',
    'ALL',
    ...mountArgs(mounts),
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...(arg0 === undefined ? [] : ['--argv0', arg0]),
    '--',
    ...(restoresInterrupt ? RESTORE_INTERRUPT : []),
    ...argv,
  ];
}

/** Outer folders first: later mounts cover earlier ones. */
function mountArgs(mounts: readonly Mount[]): string[] {
  const decided = new Map<BytePath, Mount>();
  const rank = { read: 0, write: 1, deny: 2 };
  for (const mount of mounts) {
    const before = decided.get(mount.path);
    if (!before || rank[mount.access] > rank[before.access]) decided.set(mount.path, mount);
  }
  const ordered = [...decided.values()].sort((a, b) => depth(a.path) - depth(b.path));
  const [first, ...rest] = ordered;
  const root = first?.path === '/' ? first : undefined;
  return [
    ...(root ? mountArg(root) : ['--tmpfs', '/']),
    // Through the files of cgroups a command could end the processes of others.
    ...(root?.access === 'write' ? ['--ro-bind-try', '/sys', '/sys'] : []),
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    // For root, a new /proc would have the machine's settings writable, such as the program that takes core dumps.
    ...['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus'].flatMap((path) => [
      '--ro-bind-try',
      path,
      path,
    ]),
    ...(root ? rest : ordered).flatMap(mountArg),
    // Without a root mount the sandbox's root is a tmpfs, which is made read-only.
    ...(root ? [] : ['--remount-ro', '/']),
  ];
}

function mountArg({ path, access, kind }: Mount): string[] {
  const name = nativeText(path);
  if (access === 'read') return ['--ro-bind', name, name];
  if (access === 'write') return ['--bind', name, name];
  if (kind === 'file') return ['--ro-bind', '/dev/null', name];
  return ['--perms', '000', '--tmpfs', name, '--remount-ro', name];
}

function depth(path: BytePath): number {
  return path === '/' ? 0 : path.split('/').length;
}
