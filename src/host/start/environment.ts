// The environment of a child: inherited, excluded and set variables. Values are passed only to the child.

import { globMatcher, GlobTooLong } from '../../base/glob.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { StartSpec } from '../../protocol/operations.ts';

/** Inherited by every descendant that does not clear its environment: it identifies them. */
export const MARKER_NAME = 'HOLDFAST_PROCESS';

/** What almost every program needs; the same names as codex's "core". */
const CORE_NAMES = new Set(
  'PATH SHELL TMPDIR TEMP TMP HOME LANG LC_ALL LC_CTYPE LOGNAME USER'.split(' '),
);

/** Our own variables: tokens of the host must not reach its processes. */
const PRIVATE_NAMES = /^HOLDFAST_/i;

export type Variables = Readonly<Record<string, string | undefined>>;
/** The variables that may be inherited, as pairs. */
export type Inheritable = readonly (readonly [name: string, value: string])[];

export function inheritable(env: Variables): Inheritable {
  return Object.entries(env).flatMap(([name, value]) =>
    value === undefined || PRIVATE_NAMES.test(name) ? [] : [[name, value] as const],
  );
}

/** All variables that may be inherited, in the form that a child gets. */
export interface CommonVariables {
  readonly values: ReadonlyMap<string, string>;
  /** "NAME=value" each; the same array for every child that gets all of them. */
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
  // A shell with marks gets variables that depend on others.
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
