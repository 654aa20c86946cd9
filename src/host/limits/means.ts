// What this machine can enforce, and for the rest why not: asked once, when it is needed first.

import { accessSync, constants } from 'node:fs';
import type { AllMeans, LimitName, Means } from '../../protocol/confinement/confinement.ts';
import { Cgroups, type NoGroups } from '../../system/confine/cgroups.ts';
import type { Controller } from '../../system/confine/group-use.ts';
import { beginProgram, nativeProblem } from '../../system/confine/confined-spawn.ts';
import { LEAST_LANDLOCK } from '../../system/confine/landlock.ts';
import { noNetworkFilter } from '../../system/confine/seccomp.ts';
import type { Posix } from '../../system/posix.ts';
import { BUBBLEWRAP_PLACES, bubblewrapArgs } from './bubblewrap.ts';

export interface MachineOptions {
  /** Undefined: programs are started through Node, which can confine nothing. */
  readonly posix: Posix | undefined;
  readonly groups: Cgroups | NoGroups;
  /** A bubblewrap in another place than the usual ones. */
  readonly bubblewrap?: string | undefined;
  /** Runs a program and tells whether it succeeded. */
  readonly succeeds: (argv: readonly string[]) => Promise<boolean>;
}

export interface Machine {
  readonly means: AllMeans;
  /** The path of a bubblewrap that works. */
  readonly bubblewrap: string | undefined;
}

const TRUE = '/bin/true';
const INSTALL = 'install bubblewrap (on Debian: apt-get install bubblewrap)';

export async function examineMachine(options: MachineOptions): Promise<Machine> {
  const { posix, groups } = options;
  const native = posix ? nativeProblem() : 'programs are started through Node here';
  if (!posix || native !== undefined) {
    const no: Means = { by: 'no', why: native ?? 'no system calls' };
    return { means: everything(() => no), bubblewrap: undefined };
  }
  const found = await findBubblewrap(options);
  const landlock = posix.landlockVersion();
  const inGroup = (controller: Controller, instead: Means['by']): Means => {
    if (groups instanceof Cgroups && groups.controllers.has(controller)) return { by: 'cgroup' };
    return { by: instead, why: groups.why };
  };
  const wrapped: Means =
    found.path === undefined ? { by: 'no', why: found.why } : { by: 'bubblewrap' };
  const rlimit: Means = { by: 'rlimit' };
  const isRoot = process.getuid?.() === 0;
  return {
    bubblewrap: found.path,
    means: {
      memory: inGroup('memory', 'watch'),
      pids: inGroup('pids', 'watch'),
      cpus: inGroup('cpu', 'no'),
      cpuSeconds: rlimit,
      fileBytes: rlimit,
      openFiles: rlimit,
      fs: wrapped.by === 'no' ? byLandlock(landlock, found.why) : wrapped,
      hide: wrapped,
      net: wrapped.by === 'no' && noNetworkFilter() ? { by: 'seccomp' } : wrapped,
      privileges: { by: 'no_new_privs' },
      user: isRoot
        ? { by: 'setuid' }
        : { by: 'no', why: 'only root can start programs as another user' },
      hidden: wrapped,
      group: groups instanceof Cgroups ? { by: 'cgroup' } : { by: 'no', why: groups.why },
    },
  };
}

function byLandlock(version: number, why: string): Means {
  if (version >= LEAST_LANDLOCK) return { by: 'landlock' };
  return { by: 'no', why: `${why}; Landlock would need Linux 6.2 or newer` };
}

function everything(of: (name: string) => Means): AllMeans {
  const limits: LimitName[] = ['memory', 'pids', 'cpus', 'cpuSeconds', 'fileBytes', 'openFiles'];
  const names = [...limits, 'fs', 'hide', 'net', 'privileges', 'user', 'hidden', 'group'] as const;
  return Object.fromEntries(names.map((name) => [name, of(name)])) as AllMeans;
}

async function findBubblewrap({
  bubblewrap,
  succeeds,
}: MachineOptions): Promise<{ path?: string; why: string }> {
  let installed: string | undefined;
  for (const place of bubblewrap === undefined ? BUBBLEWRAP_PLACES : [bubblewrap]) {
    try {
      accessSync(place, constants.X_OK);
    } catch {
      continue;
    }
    installed ??= place;
    if (await succeeds(probe(place))) return { path: place, why: '' };
  }
  if (installed === undefined) return { why: `bubblewrap is not installed: ${INSTALL}` };
  return {
    why: `${installed} cannot make user namespaces here: allow them (kernel.unprivileged_userns_clone, AppArmor, the container's seccomp profile)`,
  };
}

/** Everything that a sandbox may need. */
function probe(program: string): string[] {
  return bubblewrapArgs({
    program,
    rules: [{ path: '/', access: 'read', kind: 'folder' }],
    network: false,
    cwd: '/',
    env: [],
    file: TRUE,
    argv: [TRUE],
    begin: beginProgram(),
  });
}
