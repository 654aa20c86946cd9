// What decides whether two starts with one key are the same start.

import type { StartSpec } from '../../protocol/operations.ts';

/** Of everything that decides what runs. Environment values are among it, so only an HMAC is ever kept. */
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
