// The environment of a child: what it inherits, what is left out, what is set. Values never leave this file except
// into the child.

import { globMatcher, GlobTooLong } from '../../base/glob.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { StartSpec } from '../../protocol/operations.ts';

/** Carried by every descendant that does not shed its environment: by it they are found again. */
export const MARKER_NAME = 'HOLDFAST_PROCESS';

/** What nearly every program needs to run at all; the same names as codex's "core". */
const CORE_NAMES = new Set(
  'PATH SHELL TMPDIR TEMP TMP HOME LANG LC_ALL LC_CTYPE LOGNAME USER'.split(' '),
);

/** Ours, and nobody else's business: tokens of the host must not reach what it starts. */
const PRIVATE_NAMES = /^HOLDFAST_/i;

export type Variables = Readonly<Record<string, string | undefined>>;
/** What may be inherited at all, as pairs. */
export type Inheritable = readonly (readonly [name: string, value: string])[];

export function inheritable(env: Variables): Inheritable {
  return Object.entries(env).flatMap(([name, value]) =>
    value === undefined || PRIVATE_NAMES.test(name) ? [] : [[name, value] as const],
  );
}

/** All that may be inherited, in the form in which a child is given it. */
export interface CommonVariables {
  readonly values: ReadonlyMap<string, string>;
  /** "NAME=value" each, and the same array for every child that has them all. */
  readonly strings: readonly string[];
}

export function commonVariables(base: Inheritable): CommonVariables {
  return { values: new Map(base), strings: base.map(([name, value]) => `${name}=${value}`) };
}

/** Variables to add to the shared environment; undefined if this child needs another base. */
export function ownVariables(
  common: CommonVariables,
  { environment = {}, env = {}, streams, marks }: StartSpec,
  marker: string,
): Map<string, string> | undefined {
  const { inherit = 'all', exclude, only, set = {} } = environment;
  // A shell that tells of its commands is given variables by what it finds in others.
  if (inherit !== 'all' || exclude || only || streams === 'pty' || marks === true) return undefined;
  const own = new Map([...Object.entries(set), ...Object.entries(env), [MARKER_NAME, marker]]);
  for (const name of own.keys()) if (common.values.has(name)) return undefined;
  return own;
}

export function childEnvironment(
  base: Inheritable,
  spec: StartSpec,
  marker: string,
): Map<string, string> {
  const policy = spec.environment ?? {};
  const inherit = policy.inherit ?? 'all';
  const excluded = nameMatcher('exclude', policy.exclude ?? []);
  const kept = new Map<string, string>();
  for (const [name, value] of inherit === 'none' ? [] : base) {
    if (inherit === 'core' && !CORE_NAMES.has(name)) continue;
    if (excluded(name)) continue;
    kept.set(name, value);
  }
  for (const [name, value] of Object.entries(policy.set ?? {})) kept.set(name, value);
  if (policy.only) {
    const only = nameMatcher('only', policy.only);
    for (const name of kept.keys()) if (!only(name)) kept.delete(name);
  }
  if (spec.streams === 'pty') kept.set('TERM', spec.term ?? 'xterm-256color');
  for (const [name, value] of Object.entries(spec.env ?? {})) kept.set(name, value);
  kept.set(MARKER_NAME, marker);
  return kept;
}

function nameMatcher(
  field: 'exclude' | 'only',
  globs: readonly string[],
): (name: string) => boolean {
  const matches = globMatcher(globs);
  return (name) => {
    try {
      return matches(name);
    } catch (error) {
      if (!(error instanceof GlobTooLong)) throw error;
      const path = `environment.${field}`;
      throw new HoldfastError('invalid_input', `start: "${path}": ${error.message}.`, {
        field: path,
      });
    }
  };
}
