// What a start gets when its owner has a ceiling: as much as it asks for, never more.

import { HoldfastError } from '../../protocol/errors.ts';
import type {
  AskedConfinement,
  FilePolicy,
  LimitName,
  OwnerPolicy,
  ResourceLimits,
  Sandbox,
} from '../../protocol/confinement/confinement.ts';
import { isWithin } from './bubblewrap.ts';
import { absolutePolicy, realPathOf, type PathSurroundings } from './file-rules.ts';

/** What a start asks for, and what the owner's tokens at a gateway allow. */
export interface AskedStart extends AskedConfinement {
  readonly ceiling?: OwnerPolicy | undefined;
}

export function withinCeiling(
  asked: AskedConfinement,
  policy: OwnerPolicy,
  surroundings: PathSurroundings,
): AskedConfinement {
  return {
    limits: limitsWithin(asked.limits ?? {}, policy.limits ?? {}),
    sandbox: sandboxWithin(asked.sandbox ?? {}, policy.sandbox ?? {}, surroundings),
    enforce: policy.enforce === 'best' ? 'best' : (asked.enforce ?? 'refuse'),
  };
}

function limitsWithin(asked: ResourceLimits, most: ResourceLimits): ResourceLimits {
  const limits: Partial<Record<LimitName, number>> = {};
  for (const name of new Set([...Object.keys(asked), ...Object.keys(most)]) as Set<LimitName>) {
    const [wanted, ceiling] = [asked[name], most[name]];
    if (wanted !== undefined && ceiling !== undefined && wanted > ceiling)
      throw above(`limits.${name}`, `${wanted} is more than ${ceiling}`);
    const value = wanted ?? ceiling;
    if (value !== undefined) limits[name] = value;
  }
  return limits;
}

function sandboxWithin(asked: Sandbox, most: Sandbox, surroundings: PathSurroundings): Sandbox {
  if (most.user !== undefined && asked.user !== undefined && asked.user !== most.user)
    throw above('sandbox.user', `it is "${most.user}"`);
  const user = most.user ?? asked.user;
  return {
    fs: filesWithin(asked.fs ?? 'open', most.fs ?? 'open', surroundings),
    net: most.net === 'none' || asked.net === 'none' ? 'none' : 'open',
    privileges: most.privileges === 'drop' || asked.privileges === 'drop' ? 'drop' : 'keep',
    ...(user !== undefined && { user }),
  };
}

type Files = NonNullable<Sandbox['fs']>;

function filesWithin(asked: Files, most: Files, surroundings: PathSurroundings): Files {
  if (most === 'open' || asked === 'open') return most === 'open' ? asked : most;
  const ceiling = policyOf(most, surroundings);
  const wanted = policyOf(asked, surroundings);
  // What a link leads to is mounted.
  const real = (path: string): string => realPathOf(path, surroundings.local);
  const isIn = (folders: readonly string[], path: string): boolean =>
    folders.some((folder) => isWithin(folder, path) && isWithin(real(folder), real(path)));
  for (const path of wanted.write)
    if (!isIn(ceiling.write, path))
      throw above('sandbox.fs.write', `${path} is in none of its folders`);
  const read = wanted.read ?? ceiling.read;
  for (const path of (ceiling.read && read) ?? [])
    if (!isIn(ceiling.read ?? [], path))
      throw above('sandbox.fs.read', `${path} is in none of its folders`);
  const hide = [...(ceiling.hide ?? []), ...(wanted.hide ?? [])];
  return { write: wanted.write, ...(hide.length > 0 && { hide }), ...(read && { read }) };
}

function policyOf(files: Exclude<Files, 'open'>, surroundings: PathSurroundings): FilePolicy {
  return absolutePolicy(files === 'read-only' ? { write: [] } : files, surroundings);
}

function above(field: string, why: string): HoldfastError {
  const problem = `${field} goes beyond the ceiling of this owner's token: ${why}.`;
  return new HoldfastError('above_ceiling', problem, { field });
}

/** Of an owner with several tokens, here or at a gateway: the strictest of each. */
export function strictest(
  ...policies: readonly (OwnerPolicy | undefined)[]
): OwnerPolicy | undefined {
  return policies.reduce((all, next) => (all && next ? both(all, next) : (all ?? next)), undefined);
}

function both(a: OwnerPolicy, b: OwnerPolicy): OwnerPolicy {
  const limits: Partial<Record<LimitName, number | undefined>> = { ...a.limits };
  for (const [name, value] of Object.entries(b.limits ?? {}) as [LimitName, number][])
    limits[name] = Math.min(value, limits[name] ?? Infinity);
  const [one, other] = [a.sandbox ?? {}, b.sandbox ?? {}];
  const user = one.user ?? other.user;
  return {
    level: a.level === 'hidden' || b.level === 'hidden' ? 'hidden' : 'none',
    limits,
    sandbox: {
      fs: stricterFiles(one.fs ?? 'open', other.fs ?? 'open'),
      net: one.net === 'none' || other.net === 'none' ? 'none' : 'open',
      privileges: one.privileges === 'drop' || other.privileges === 'drop' ? 'drop' : 'keep',
      ...(user !== undefined && { user }),
    },
    enforce: a.enforce === 'best' && b.enforce === 'best' ? 'best' : 'refuse',
  };
}

/** Tokens have absolute paths. */
function stricterFiles(a: Files, b: Files): Files {
  if (a === 'open') return b;
  if (b === 'open') return a;
  const [one, other] = [a, b].map((files) => (files === 'read-only' ? { write: [] } : files));
  const within = (paths: readonly string[], folders: readonly string[]): string[] =>
    paths.filter((path) => folders.some((folder) => isWithin(folder, path)));
  const write = [
    ...within(one?.write ?? [], other?.write ?? []),
    ...within(other?.write ?? [], one?.write ?? []),
  ];
  const hide = [...(one?.hide ?? []), ...(other?.hide ?? [])];
  const read =
    one?.read && other?.read
      ? [...new Set([...within(one.read, other.read), ...within(other.read, one.read)])]
      : (one?.read ?? other?.read);
  return { write: [...new Set(write)], ...(hide.length > 0 && { hide }), ...(read && { read }) };
}
