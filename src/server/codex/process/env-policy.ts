// The environment of a codex process: the server's variables filtered by the client's policy, and the client's own on
// top.

import { globMatcher, GlobTooLong } from '../../../base/glob.ts';
import { inheritable } from '../../../host/start/environment.ts';
import { Fields, invalid } from '../params.ts';

type Variables = Readonly<Record<string, string | undefined>>;

const CORE_NAMES = new Set(
  'PATH SHELL TMPDIR TEMP TMP HOME LANG LC_ALL LC_CTYPE LOGNAME USER'.split(' '),
);
const DEFAULT_EXCLUDES = ['*KEY*', '*SECRET*', '*TOKEN*'];
/** codex's own secrets and switches, never passed on, compared without case. */
const NEVER = new Set([
  'CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN',
  'NODE_REPL_AUTH_TOKEN',
  'OPENAI_FEDERATION_RULE_ID',
  'OPENAI_IDENTITY_TOKEN_FILE',
  'OPENAI_WORKLOAD_IDENTITY_CONTEXT',
  'CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE',
]);
const INHERIT = ['core', 'all', 'none'];

/** Without a policy exactly `env`. The steps of a policy have the same order as in codex. */
export function buildEnvironment(
  env: Readonly<Record<string, string>>,
  policy: unknown,
  own: Variables,
): Record<string, string> {
  const result = new Map<string, string>();
  if (policy !== undefined && policy !== null)
    for (const [name, value] of inheritByPolicy(readPolicy(policy), own)) result.set(name, value);
  for (const [name, value] of Object.entries(env)) result.set(name, value);
  for (const name of result.keys()) if (NEVER.has(name.toUpperCase())) result.delete(name);
  return Object.fromEntries(result);
}

/** Those of the variables that the policy does not exclude. */
export function filterByPolicy(
  policy: unknown,
  variables: ReadonlyMap<string, string>,
): Map<string, string> {
  if (policy === undefined || policy === null) return new Map(variables);
  const { excludes, keeps } = readPolicy(policy);
  return new Map([...variables].filter(([name]) => !excludes(name) && keeps(name)));
}

/** The variables that the policy sets. */
export function variablesSetBy(policy: unknown): Record<string, string> {
  return policy === undefined || policy === null ? {} : readPolicy(policy).set;
}

interface Policy {
  readonly inherit: string;
  readonly set: Record<string, string>;
  readonly excludes: (name: string) => boolean;
  readonly keeps: (name: string) => boolean;
}

function readPolicy(value: unknown): Policy {
  const policy = new Fields(value, 'struct ExecEnvPolicy');
  const inherit = policy.text('inherit');
  if (!INHERIT.includes(inherit)) {
    const known = INHERIT.map((name) => `\`${name}\``).join(', ');
    throw invalid(`unknown variant \`${inherit}\`, expected one of ${known}`);
  }
  const keepSecrets = policy.flag('ignoreDefaultExcludes');
  const isExcluded = nameMatcher([
    ...(keepSecrets ? [] : DEFAULT_EXCLUDES),
    ...policy.texts('exclude'),
  ]);
  const set = policy.variables('set');
  const includeOnly = policy.texts('includeOnly');
  const isIncluded = nameMatcher(includeOnly);
  return {
    inherit,
    set,
    excludes: (name) => NEVER.has(name.toUpperCase()) || isExcluded(name),
    keeps: (name) => includeOnly.length === 0 || isIncluded(name),
  };
}

function inheritByPolicy(
  { inherit, set, excludes, keeps }: Policy,
  own: Variables,
): Map<string, string> {
  const kept = new Map<string, string>();
  for (const [name, value] of inherit === 'none' ? [] : inheritable(own)) {
    if (inherit === 'core' && !CORE_NAMES.has(name)) continue;
    if (!excludes(name)) kept.set(name, value);
  }
  for (const [name, value] of Object.entries(set)) kept.set(name, value);
  return new Map([...kept].filter(([name]) => keeps(name)));
}

function nameMatcher(globs: readonly string[]): (name: string) => boolean {
  const matches = globMatcher(globs);
  return (name) => {
    try {
      return matches(name);
    } catch (error) {
      throw error instanceof GlobTooLong ? invalid(error.message) : error;
    }
  };
}
