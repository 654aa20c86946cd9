// Decides how a start is confined: what is asked for and what its owner may have, held against what this machine can enforce.
// What cannot be enforced is refused, or named in the answer if the caller asked for the best that is possible.

import { closeSync, constants, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { HoldfastError } from '../../protocol/errors.ts';
import type {
  AllMeans,
  AskedConfinement,
  Confinement,
  Fence,
  LimitName,
  MeansName,
  OwnerPolicy,
  Sandbox,
} from '../../protocol/confinement/confinement.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { GroupLimits } from '../../system/confine/cgroups.ts';
import { beginProgram } from '../../system/confine/confined-spawn.ts';
import { noNetworkFilter } from '../../system/confine/seccomp.ts';
import { findUser } from '../../system/confine/users.ts';
import type { Posix } from '../../system/posix.ts';
import { accessTo, bubblewrapArgs } from './bubblewrap.ts';
import { withinCeiling } from './ceilings.ts';
import { fileRules, type FileRule, type PathSurroundings } from './file-rules.ts';
import type { Machine } from './means.ts';

/** How one start is confined. */
export interface Decision {
  readonly confinement: Confinement;
  /** Limits of its cgroup. */
  readonly group: GroupLimits;
  /** Limits that the host watches. */
  readonly watched: Pick<GroupLimits, 'memory' | 'pids'>;
  /** The plan with everything that confines it. `release` closes what the plan refers to, after the start. */
  apply(plan: LaunchPlan): { readonly plan: LaunchPlan; readonly release: () => void };
}

export interface DecisionContext {
  readonly machine: Machine;
  readonly posix: Posix | undefined;
  /** Folders of ours that a sandbox never shows. */
  readonly hidden: readonly string[];
  /** Of these, folders that programs need and may read. */
  readonly visible: readonly string[];
  readonly policy: OwnerPolicy | undefined;
  readonly surroundings: PathSurroundings;
}

/** RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE. */
const RESOURCES = { cpuSeconds: 0, fileBytes: 1, openFiles: 7 } as const;
/** Devices that programs write to, for a sandbox of Landlock, which has no /dev of its own. */
const DEVICES = [
  '/dev/null',
  '/dev/zero',
  '/dev/full',
  '/dev/tty',
  '/dev/ptmx',
  '/dev/pts',
  '/dev/shm',
];
/** Variables by which the loader, the C library or a shell would run code of the command's choice outside its sandbox. */
const LOADER_VARIABLES =
  /^(?:LD_|GLIBC_|GCONV_PATH=|LOCPATH=|NLSPATH=|BASH_ENV=|ENV=|SHELLOPTS=|BASHOPTS=|BASH_FUNC_|PS4=|MALLOC_)/;

export function decide(asked: AskedConfinement, context: DecisionContext): Decision {
  const { policy, surroundings, machine } = context;
  const wanted = policy ? withinCeiling(asked, policy, surroundings) : asked;
  const judge = new Judge(machine.means, wanted.enforce === 'best');
  const { held, fence, group, watched } = decideLimits(wanted, judge);
  const sandbox = decideSandbox(wanted.sandbox ?? {}, policy?.level === 'hidden', judge, {
    ...context,
    isDistrusted: policy !== undefined && typeof asked.sandbox?.fs === 'object',
  });
  const missing = [...judge.missing];
  const confinement: Confinement = {
    ...held,
    ...sandbox.held,
    ...(policy?.level === 'none' && !sandbox.held.hidden && { none: true as const }),
    ...(missing.length > 0 && { missing }),
  };
  return {
    confinement,
    group,
    watched,
    apply: (plan) =>
      sandbox.apply({ ...plan, fence: { ...plan.fence, ...fence, ...sandbox.fence } }),
  };
}

/** Refuses what cannot be enforced, or remembers it. */
class Judge {
  readonly means: AllMeans;
  readonly isLenient: boolean;
  readonly missing = new Set<string>();

  constructor(means: AllMeans, isLenient: boolean) {
    this.means = means;
    this.isLenient = isLenient;
  }

  /** Whether it can be enforced. Only with "best" is watching enough. */
  can(name: MeansName, field: string): boolean {
    const { by, why } = this.means[name];
    if (by !== 'no' && (by !== 'watch' || this.isLenient)) return true;
    this.lacks(field, why ?? 'it is not possible on this machine');
    return false;
  }

  lacks(field: string, why: string): void {
    if (!this.isLenient) throw unenforceable(field, why);
    this.missing.add(field);
  }
}

function decideLimits({ limits = {} }: AskedConfinement, judge: Judge) {
  const held: Partial<Record<LimitName, NonNullable<Confinement['memory']>>> = {};
  const rlimits: NonNullable<Fence['limits']>[number][] = [];
  const group: Partial<Record<'memory' | 'pids' | 'cpus', number>> = {};
  const watched: Partial<Record<'memory' | 'pids', number>> = {};
  for (const [name, limit] of Object.entries(limits) as [LimitName, number | undefined][]) {
    if (limit === undefined || !judge.can(name, name)) continue;
    const { by } = judge.means[name];
    if (name === 'memory' || name === 'pids' || name === 'cpus') {
      if (by === 'cgroup') group[name] = limit;
      else if (name !== 'cpus') watched[name] = limit;
    } else {
      // A second longer before SIGKILL, for a program that handles SIGXCPU.
      const hard = name === 'cpuSeconds' ? limit + 1 : limit;
      rlimits.push({ resource: RESOURCES[name], soft: limit, hard });
    }
    held[name] = { limit, by: by as 'cgroup' | 'watch' | 'rlimit' };
  }
  return { held, group, watched, fence: rlimits.length > 0 ? { limits: rlimits } : {} };
}

interface SandboxContext extends DecisionContext {
  /** The paths are the choice of a scoped token, whose other commands may replace them meanwhile. */
  readonly isDistrusted: boolean;
}

interface DecidedSandbox {
  readonly held: Confinement;
  readonly fence: Fence;
  apply(plan: LaunchPlan): { plan: LaunchPlan; release: () => void };
}

function decideSandbox(
  sandbox: Sandbox,
  isHidden: boolean,
  judge: Judge,
  context: SandboxContext,
): DecidedSandbox {
  const { fs = 'open', net = 'open', privileges = 'keep' } = sandbox;
  const user = userOf(sandbox.user, judge);
  const hidesFiles = typeof fs === 'object' && (fs.hide?.length ?? 0) > 0;
  const wantsFiles =
    fs !== 'open' && judge.can(hidesFiles ? 'hide' : 'fs', hidesFiles ? 'fs.hide' : 'fs');
  const wantsNoNet = net === 'none' && judge.can('net', 'net');
  const wantsHidden = isHidden && !user && judge.can('hidden', 'hidden');
  const byLandlock = wantsFiles && judge.means.fs.by === 'landlock';
  const bySeccomp = wantsNoNet && judge.means.net.by === 'seccomp';
  const isWrapped =
    context.machine.bubblewrap !== undefined && (wantsFiles || wantsNoNet || wantsHidden);
  const drops = privileges === 'drop';
  const held: Confinement = {
    ...(wantsFiles && { fs: { by: byLandlock ? 'landlock' : 'bubblewrap' } }),
    ...(wantsNoNet && { net: { by: bySeccomp ? 'seccomp' : 'netns' } }),
    ...(drops && { privileges: { by: 'no_new_privs' } }),
    ...(user && { user: { name: user.name, by: 'setuid' } }),
    ...((isWrapped || (isHidden && user)) && { hidden: { by: isWrapped ? 'bubblewrap' : 'user' } }),
  };
  const filter = bySeccomp ? noNetworkFilter() : undefined;
  const fence: Fence = {
    ...((drops || byLandlock || filter) && { dropsPrivileges: true }),
    ...(filter && { filter }),
    ...(user && { user: { uid: user.uid, gid: user.gid, groups: user.groups } }),
  };
  return {
    held,
    fence,
    apply: (plan) => {
      const own = user ? { ...plan, ...asUser(plan, user) } : plan;
      if (isWrapped)
        return {
          plan: wrap(own, wantsFiles ? fs : 'open', !wantsNoNet, context),
          release: () => undefined,
        };
      return byLandlock ? landlocked(own, fs, context) : { plan: own, release: () => undefined };
    },
  };
}

function userOf(name: string | undefined, judge: Judge) {
  if (name === undefined || !judge.can('user', 'user')) return undefined;
  const user = findUser(name);
  if (!user)
    throw new HoldfastError('invalid_input', `There is no user "${name}".`, {
      field: 'sandbox.user',
    });
  return user;
}

/** Root's variables say where root's files are. */
function asUser(plan: LaunchPlan, user: { readonly name: string; readonly home: string }) {
  const all = [...(plan.commonEnv ?? []), ...plan.env];
  const others = all.filter((variable) => !/^(?:HOME|USER|LOGNAME)=/.test(variable));
  return {
    env: [...others, `HOME=${user.home}`, `USER=${user.name}`, `LOGNAME=${user.name}`],
    commonEnv: [],
  };
}

function wrap(
  plan: LaunchPlan,
  fs: NonNullable<Sandbox['fs']>,
  network: boolean,
  { machine, hidden, visible, surroundings, policy, isDistrusted }: SandboxContext,
): LaunchPlan {
  const own = { hidden, visible };
  const rules = fileRules(fs, own, { ...surroundings, cwd: plan.cwd });
  checkFolder(rules, plan.cwd);
  const [inside, outside] = [plan.env.filter(isLoader), plan.env.filter((each) => !isLoader(each))];
  const begin = beginFor(plan);
  const request = {
    program: machine.bubblewrap ?? '',
    rules,
    network,
    cwd: plan.cwd,
    env: inside,
    file: plan.file,
    argv: plan.argv,
    begin,
    around: isDistrusted ? fileRules(policy?.sandbox?.fs ?? 'open', own, surroundings) : undefined,
  };
  return {
    ...plan,
    file: request.program,
    argv: bubblewrapArgs(request),
    shownArgv: plan.shownArgv ?? plan.argv,
    env: outside,
    fence: { ...plan.fence, ...(begin !== undefined && { ignoresSignals: true }) },
  };
}

/** Undefined for another user who cannot reach it. */
function beginFor({ fence }: LaunchPlan): string | undefined {
  const path = realpathSync(beginProgram());
  return fence?.user && !isForEveryone(path) ? undefined : path;
}

function isForEveryone(path: string): boolean {
  const allowed = (statSync(path).mode & constants.S_IXOTH) !== 0;
  return allowed && (path === '/' || isForEveryone(dirname(path)));
}

function isLoader(variable: string): boolean {
  return LOADER_VARIABLES.test(variable);
}

function landlocked(
  plan: LaunchPlan,
  fs: NonNullable<Sandbox['fs']>,
  { posix, surroundings }: DecisionContext,
) {
  if (!posix) throw unenforceable('fs', 'there are no system calls');
  const rules = fileRules(fs, { hidden: [], visible: [] }, { ...surroundings, cwd: plan.cwd });
  checkFolder(rules, plan.cwd);
  const protects = rules.find(
    ({ access, path }) =>
      access === 'read' &&
      rules.some((each) => each.access === 'write' && each.path !== path && accessTo([each], path)),
  );
  // Landlock can only allow: what is below a writable folder is writable.
  if (protects)
    throw unenforceable(
      'fs.read',
      `${protects.path} lies in a writable folder, and only bubblewrap can protect it there`,
    );
  const devices = DEVICES.map((path): FileRule => ({
    path,
    access: 'write',
    kind: path.endsWith('pts') || path.endsWith('shm') ? 'folder' : 'file',
  }));
  const reads = rules.every(({ path }) => path !== '/');
  const all = [...rules, ...devices].map(({ path, access, kind }) => ({
    path,
    access: access === 'write' ? ('write' as const) : ('read' as const),
    isFolder: kind === 'folder',
  }));
  const domain = posix.landlockRuleset(all, reads);
  return { plan: { ...plan, fence: { ...plan.fence, domain } }, release: () => closeSync(domain) };
}

function checkFolder(rules: readonly FileRule[], cwd: string): void {
  const access = accessTo(rules, cwd);
  if (access !== undefined && access !== 'hide') return;
  const problem = `The working directory ${cwd} is not visible in the sandbox that was asked for.`;
  throw new HoldfastError('cwd_not_usable', problem, { cwd });
}

function unenforceable(field: string, why: string): HoldfastError {
  const isLimit = ['memory', 'pids', 'cpus', 'cpuSeconds', 'fileBytes', 'openFiles'].includes(
    field,
  );
  const problem = `${isLimit ? `The limit "${field}"` : `The sandbox's "${field}"`} cannot be enforced here: ${why}.`;
  return new HoldfastError(isLimit ? 'limit_unenforceable' : 'sandbox_unenforceable', problem, {
    field,
  });
}
