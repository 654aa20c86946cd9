// The command line of bubblewrap for a policy: what of the disk is there, what of it can be written, and what a command
// in it is cut off from.

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
  /** Set for the command only. */
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
  readonly arg0: string | undefined;
  /** `env` is in sight of the command, so that an interrupt can be handed through to it. */
  readonly hears: boolean;
}

/**
 * An interrupt goes to the whole group, and so to bubblewrap, which would end and take the command with it before that
 * can do anything about it. So it begins with interrupts ignored, and the command gets them back.
 */
const DEAF = ['/bin/sh', '-c', 'trap "" INT; exec "$@"', 'sandbox'];
const HEARING = ['/usr/bin/env', '--default-signal=INT', '--'];

export function bubblewrapArgs(confinement: Confinement): string[] {
  const { program, mounts, network, env, argv, arg0 } = confinement;
  // A name given to the command would go to `env` instead.
  const hears = confinement.hears && arg0 === undefined;
  return [
    ...(hears ? DEAF : []),
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
    ...(hears ? HEARING : []),
    ...argv,
  ];
}

/** Outer folders first: what comes later covers what was there. */
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
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    ...(root ? rest : ordered).flatMap(mountArg),
    // Without a root of its own the sandbox's is made of memory, and stays as it is.
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
