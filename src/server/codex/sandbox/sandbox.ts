// The sandbox that a codex client asks for around a command: enforced with bubblewrap where that is installed and works
// and the policy can be expressed, else refused. Never left out in silence.

import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import { errnoOf } from '../../../base/disk.ts';
import { bubblewrapArgs, type Mount } from './bwrap-args.ts';
import type { CutOff } from './denial.ts';
import { accessTo, readPolicy, unenforceable, type Rule, type SandboxPolicy } from './policy.ts';
import { bytePath, isWithin, pathBytes, type BytePath } from '../fs/uri.ts';

/** A start as it would be without a sandbox. */
export interface SandboxPlan {
  readonly argv: readonly string[];
  readonly arg0?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** What runs instead, so that the policy holds. */
export interface SandboxedCommand {
  readonly argv: readonly string[];
  readonly sandboxType: 'none' | 'linuxSeccomp';
  readonly cutOff?: CutOff;
  /** In place of the plan's: what steers the loader reaches the command, not the program that builds its sandbox. */
  readonly env?: Readonly<Record<string, string>>;
  /** In place of the plan's: bubblewrap gives it to the command. */
  readonly arg0?: undefined;
}

export interface SandboxTools {
  /** Folders that hold sockets and secrets of ours: behind them a command could start another without a sandbox. */
  readonly hidden: readonly string[];
  readonly tmpdir: string | undefined;
  /** Undefined where there is none that works. */
  bubblewrap(): Promise<string | undefined>;
}

/** `undefined`: the policy cannot be enforced here, and the start must be refused. Throws for one that does not decode. */
export async function sandboxed(
  plan: SandboxPlan | readonly string[],
  sandbox: unknown,
  tools?: SandboxTools,
): Promise<SandboxedCommand | undefined> {
  const policy = await readPolicy(sandbox, tools?.tmpdir);
  const whole = 'argv' in plan ? plan : { argv: plan, env: {} };
  if (policy.kind === 'none' || isOpen(policy)) return { argv: whole.argv, sandboxType: 'none' };
  // Whoever enforces an external sandbox, it is not us.
  if (policy.kind === 'external' || tools === undefined || !('argv' in plan)) return undefined;
  const program = await tools.bubblewrap();
  if (program === undefined) return undefined;
  const hidden = tools.hidden.map((path): Rule => ({
    path: bytePath(path),
    access: 'deny',
    optional: true,
  }));
  const rules = policy.rules ?? [{ path: '/', access: 'write' } as const];
  const mounts = await mountsOf([...rules, ...hidden]);
  const { outside, inside } = divided(plan.env);
  const argv = bubblewrapArgs({
    program,
    mounts,
    network: policy.network,
    env: inside,
    argv: plan.argv,
    arg0: plan.arg0,
    hears: accessTo(rules, '/usr/bin/env') !== undefined,
  });
  const cutOff = policy.network ? 'files' : 'files and network';
  return { argv, env: outside, sandboxType: 'linuxSeccomp', cutOff };
}

function isOpen({ kind, rules, network }: SandboxPolicy): boolean {
  return kind === 'managed' && rules === undefined && network;
}

/**
 * Only what is there can be mounted. What is missing and should be readable is simply missing; what is missing and should
 * be kept from a writable folder around it cannot be, so that the policy cannot be expressed.
 */
async function mountsOf(rules: readonly Rule[]): Promise<Mount[]> {
  const mounts: Mount[] = [];
  const rooted = rules.some(({ path }) => path === '/');
  for (const rule of rules) {
    const kind = await kindOf(rule.path);
    if (kind !== undefined) mounts.push(...placed(rule, kind, rooted));
    else if (rule.access !== 'write' && !rule.optional && isWritableAround(rules, rule.path))
      throw unenforceable();
  }
  return mounts;
}

/** Where no root brings the links along, a folder is put at the link's name too: programs look for /lib64. */
function placed({ path, access, alias }: Rule, kind: Mount['kind'], rooted: boolean): Mount[] {
  const mount = { path, access, kind };
  return alias === undefined || rooted ? [mount] : [mount, { ...mount, path: alias }];
}

function isWritableAround(rules: readonly Rule[], path: BytePath): boolean {
  return rules.some((rule) => rule.access === 'write' && isWithin(rule.path, path));
}

async function kindOf(path: BytePath): Promise<Mount['kind'] | undefined> {
  try {
    return (await lstat(pathBytes(path))).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
}

/** Variables by which the loader, the C library or a shell would run code of the command's choice before its sandbox is up. */
const STEERING =
  /^(?:LD_|GLIBC_|GCONV_PATH$|LOCPATH$|NLSPATH$|BASH_ENV$|ENV$|SHELLOPTS$|BASHOPTS$|BASH_FUNC_|PS4$|MALLOC_)/;

function divided(env: SandboxPlan['env']): {
  outside: Record<string, string>;
  inside: Record<string, string>;
} {
  const entries = Object.entries(env);
  const steers = ([name]: [string, string]): boolean => STEERING.test(name);
  return {
    outside: Object.fromEntries(entries.filter((entry) => !steers(entry))),
    inside: Object.fromEntries(entries.filter(steers)),
  };
}

/**
 * For a server: one set for all of its connections. `socketFolders`: where sockets of ours are that are not in the home.
 * HOLDFAST_BUBBLEWRAP names a bubblewrap that is somewhere else than usual.
 */
export function sandboxTools(
  home: string,
  socketFolders: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): SandboxTools {
  return {
    hidden: [home, ...socketFolders],
    tmpdir: env['TMPDIR'],
    bubblewrap: findBubblewrap(env['HOLDFAST_BUBBLEWRAP']),
  };
}

/** Not from a path that a client or a workspace could put something into. */
const PLACES = [
  '/usr/bin/bwrap',
  '/bin/bwrap',
  '/usr/local/bin/bwrap',
  '/run/current-system/sw/bin/bwrap',
];

/** Looks once: whether it is installed, and whether this kernel lets it work. */
export function findBubblewrap(given?: string): () => Promise<string | undefined> {
  let found: Promise<string | undefined> | undefined;
  return () => (found ??= firstWorking(given === undefined ? PLACES : [given]));
}

async function firstWorking(places: readonly string[]): Promise<string | undefined> {
  for (const place of places) {
    try {
      await access(place, constants.X_OK);
    } catch {
      continue;
    }
    if (await works(place)) return place;
  }
  return undefined;
}

function works(program: string): Promise<boolean> {
  const probe = bubblewrapArgs({
    program,
    mounts: [{ path: '/', access: 'read', kind: 'folder' }],
    network: false,
    env: {},
    argv: ['true'],
    arg0: undefined,
    hears: true,
  });
  const [first = program, ...rest] = probe;
  return new Promise((resolve) => {
    execFile(first, rest, { timeout: 10_000, env: { PATH: '/usr/bin:/bin' } }, (error) =>
      resolve(error === null),
    );
  });
}
