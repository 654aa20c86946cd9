// The inputs that decide whether two starts with one key are equal.

import type { StartSpec } from '../../protocol/operations.ts';

/** Everything that decides what runs. It contains values of the environment, so only its HMAC is stored. */
export function inputsOf(spec: StartSpec): string {
  const {
    command,
    argv,
    cwd,
    environment,
    env,
    streams,
    stdin,
    size,
    term,
    hardTimeoutMs,
    labels,
  } = spec;
  const inputs = [
    command,
    spec.arg0 === undefined ? argv : { argv, arg0: spec.arg0 },
    cwd,
    environment,
    sorted(env),
    streams,
    stdin,
    size,
    term,
    hardTimeoutMs,
    sorted(labels),
  ];
  return JSON.stringify(inputs);
}

function sorted(values: Record<string, string> | undefined): [string, string][] {
  return Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}
