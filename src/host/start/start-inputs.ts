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
    sorted(withoutTrace(labels)),
    // Absent where nothing is asked for, so that starts of earlier versions are recognised.
    ...(spec.limits || spec.sandbox ? [spec.limits ?? null, spec.sandbox ?? null] : []),
  ];
  return JSON.stringify(inputs);
}

/** Which trace a start belongs to decides nothing of what runs. */
function withoutTrace(labels: StartSpec['labels']): StartSpec['labels'] {
  if (labels?.['traceparent'] === undefined) return labels;
  const { traceparent: _, ...others } = labels;
  return others;
}

function sorted(values: Record<string, string> | undefined): [string, string][] {
  return Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
}
