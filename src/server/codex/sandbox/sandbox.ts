// Runs a command in the sandbox that a codex client asks for, with bubblewrap. If bubblewrap is missing or broken, or
// cannot express the policy, the start is refused.

import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { BUBBLEWRAP_PLACES } from '../../../host/limits/bubblewrap.ts';
import { isOfMachine } from '../../../host/limits/file-rules.ts';
import { bubblewrapArgs, type Mount } from './bwrap-args.ts';
import type { CutOff } from './denial.ts';
import {
  accessTo,
  readPolicy,
  unenforceable,
  withoutLinks,
  type Rule,
  type SandboxPolicy,
} from './policy.ts';
import { answeringMounts } from '../fs/answering-mounts.ts';
import { bytePath, isWithin, pathBytes, type BytePath } from '../fs/uri.ts';

/** A start as it would be without a sandbox. */
export interface SandboxPlan {
  readonly argv: readonly string[];
  readonly arg0?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** The command line that enforces the policy. */
export interface SandboxedCommand {
  readonly argv: readonly string[];
  readonly sandboxType: 'none' | 'linuxSeccomp';
  readonly cutOff?: CutOff;
  /** Replaces the plan's: variables that affect the loader reach only the command, not bubblewrap. */
  readonly env?: Readonly<Record<string, string>>;
  /** Replaces the plan's: bubblewrap passes it to the command. */
  readonly arg0?: undefined;
}

export interface SandboxTools {
  /** Folders with our sockets and secrets, through which a command could start another one without a sandbox. */
  readonly hidden: readonly string[];
  readonly tmpdir: string | undefined;
  /** Undefined if there is none that works. */
  bubblewrap(): Promise<string | undefined>;
}

/** Undefined: the policy cannot be enforced here, and the start must be refused. Throws if the policy is malformed. */
export async function wrapInSandbox(
  plan: SandboxPlan | readonly string[],
  sandbox: unknown,
  tools?: SandboxTools,
): Promise<SandboxedCommand | undefined> {
  const policy = await readPolicy(sandbox, tools?.tmpdir);
  const whole = 'argv' in plan ? plan : { argv: plan, env: {} };
  if (policy.kind === 'none' || isUnrestricted(policy))
    return { argv: whole.argv, sandboxType: 'none' };
  // An external sandbox is not ours to enforce.
  if (policy.kind === 'external' || tools === undefined || !('argv' in plan)) return undefined;
  const program = await tools.bubblewrap();
  if (program === undefined) return undefined;
  const hidden = await Promise.all(tools.hidden.map(hiddenRule));
  const rules = policy.rules ?? [{ path: '/', access: 'write' } as const];
  if (rules.some((rule) => opens(rule, hidden))) throw unenforceable();
  const mounts = await mountsOf([...rules.filter((rule) => !isReplaced(rule)), ...hidden]);
  const { outside, inside } = splitLoaderVariables(plan.env);
  const argv = bubblewrapArgs({
    program,
    mounts,
    network: policy.network,
    env: inside,
    argv: plan.argv,
    arg0: plan.arg0,
    restoresInterrupt: accessTo(rules, '/usr/bin/env') !== undefined,
  });
  const cutOff = policy.network ? 'files' : 'files and network';
  return { argv, env: outside, sandboxType: 'linuxSeccomp', cutOff };
}

async function hiddenRule(path: string): Promise<Rule> {
  return { path: await withoutLinks(bytePath(path)), access: 'deny', optional: true };
}

/**
 * A path below a hidden folder would be mounted over what hides it. The machine's own /proc and /sys lead to other processes and
 * to the cgroups of all.
 */
function opens({ path, alias, access }: Rule, hidden: readonly Rule[]): boolean {
  const names = alias === undefined ? [path] : [path, alias];
  if (access === 'deny') return false;
  return names.some(
    (name) =>
      (access === 'write' && isOfMachine(name)) || hidden.some((each) => isWithin(each.path, name)),
  );
}

/** Every sandbox has its own of these. */
function isReplaced({ path, access }: Rule): boolean {
  return access !== 'deny' && isOfMachine(path) && !isWithin('/sys', path);
}

function isUnrestricted({ kind, rules, network }: SandboxPolicy): boolean {
  return kind === 'managed' && rules === undefined && network;
}

/**
 * Only existing paths can be mounted. A missing readable path just stays missing. A missing path that must be protected
 * inside a writable folder cannot be, so the policy cannot be expressed.
 */
async function mountsOf(rules: readonly Rule[]): Promise<Mount[]> {
  const mounts: Mount[] = [];
  const rooted = rules.some(({ path }) => path === '/');
  for (const rule of rules) {
    const kind = await kindOf(rule.path);
    if (kind !== undefined) mounts.push(...mountsFor(rule, kind, rooted));
    else if (rule.access !== 'write' && !rule.optional && isWritableAround(rules, rule.path))
      throw unenforceable();
  }
  return mounts;
}

/**
 * Without a root mount there are no links, so a folder is also mounted at the link's name: programs look for /lib64.
 */
function mountsFor({ path, access, alias }: Rule, kind: Mount['kind'], rooted: boolean): Mount[] {
  const mount = { path, access, kind };
  return alias === undefined || rooted ? [mount] : [mount, { ...mount, path: alias }];
}

function isWritableAround(rules: readonly Rule[], path: BytePath): boolean {
  return rules.some((rule) => rule.access === 'write' && isWithin(rule.path, path));
}

async function kindOf(path: BytePath): Promise<Mount['kind'] | undefined> {
  try {
    await answeringMounts.check(path);
    return (await lstat(pathBytes(path))).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

/**
 * Variables by which the loader, the C library or a shell would run code of the command's choice outside its sandbox.
 */
const LOADER_VARIABLES =
  /^(?:LD_|GLIBC_|GCONV_PATH$|LOCPATH$|NLSPATH$|BASH_ENV$|ENV$|SHELLOPTS$|BASHOPTS$|BASH_FUNC_|PS4$|MALLOC_)/;

function splitLoaderVariables(env: SandboxPlan['env']): {
  outside: Record<string, string>;
  inside: Record<string, string>;
} {
  const entries = Object.entries(env);
  const affectsLoader = ([name]: [string, string]): boolean => LOADER_VARIABLES.test(name);
  return {
    outside: Object.fromEntries(entries.filter((entry) => !affectsLoader(entry))),
    inside: Object.fromEntries(entries.filter(affectsLoader)),
  };
}

/** Checks once whether it is installed and works on this kernel. */
export function findBubblewrap(given?: string): () => Promise<string | undefined> {
  let found: Promise<string | undefined> | undefined;
  return () => (found ??= firstWorking(given === undefined ? BUBBLEWRAP_PLACES : [given]));
}

async function firstWorking(places: readonly string[]): Promise<string | undefined> {
  for (const place of places) {
    try {
      await access(place, constants.X_OK);
    } catch {
      continue;
    }
    if (await isWorking(place)) return place;
  }
  return undefined;
}

function isWorking(program: string): Promise<boolean> {
  const probe = bubblewrapArgs({
    program,
    mounts: [{ path: '/', access: 'read', kind: 'folder' }],
    network: false,
    env: {},
    argv: ['true'],
    arg0: undefined,
    restoresInterrupt: true,
  });
  const [first = program, ...rest] = probe;
  return new Promise((resolve) => {
    execFile(first, rest, { timeout: 10_000, env: { PATH: '/usr/bin:/bin' } }, (error) =>
      resolve(error === null),
    );
  });
}
