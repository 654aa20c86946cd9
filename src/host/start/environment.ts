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
export class CommonVariables {
  readonly values: ReadonlyMap<string, string>;
  private readonly base: Inheritable;
  private readonly strings: readonly string[];
  /** For the last child that replaced some of them: the next one often replaces the same. */
  private reduced: { readonly replaced: string; readonly strings: readonly string[] };

  constructor(base: Inheritable) {
    this.base = base;
    this.values = new Map(base);
    this.strings = base.map(textOf);
    this.reduced = { replaced: '', strings: this.strings };
  }

  /** "NAME=value" each, without those that `own` replaces; often the same array, which is converted for C once. */
  stringsBeside(own: ReadonlyMap<string, string>): readonly string[] {
    const names = Array.from(own.keys()).filter((name) => this.values.has(name));
    if (names.length === 0) return this.strings;
    const replaced = names.join('\0');
    if (replaced !== this.reduced.replaced) {
      const left = this.base.filter(([name]) => !names.includes(name));
      this.reduced = { replaced, strings: left.map(textOf) };
    }
    return this.reduced.strings;
  }
}

function textOf([name, value]: readonly [string, string]): string {
  return `${name}=${value}`;
}

/** Variables to add to the shared environment; undefined if this child needs another base. */
export function ownVariables(
  { environment = {}, env = {}, streams, marks }: StartSpec,
  marker: string,
): Map<string, string> | undefined {
  const { inherit = 'all', exclude, only, set = {} } = environment;
  // A shell with marks gets variables that depend on others.
  if (inherit !== 'all' || exclude || only || streams === 'pty' || marks === true) return undefined;
  return new Map([...Object.entries(set), ...Object.entries(env), [MARKER_NAME, marker]]);
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
