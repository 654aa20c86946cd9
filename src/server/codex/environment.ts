// What a codex client asks about where its commands run: environment/info, environment/status, environmentConfig/read.

import type { CodexSurroundings, MethodTable } from './rpc.ts';

/** Also the `environmentInfo` of the answer to `initialize`. Capabilities of processes are added by whoever serves them. */
export interface EnvironmentInfo {
  readonly shell: { readonly name: string; readonly path: string };
  readonly capabilities?: Readonly<Record<string, boolean>>;
  readonly [field: string]: unknown;
}

export function environmentInfo(surroundings: CodexSurroundings): EnvironmentInfo {
  const path = surroundings.env['SHELL'] ?? '/bin/sh';
  return { shell: { name: path.split('/').at(-1) ?? 'sh', path } };
}

export function environmentMethods(
  _surroundings: CodexSurroundings,
  _info: () => EnvironmentInfo,
): MethodTable {
  return {};
}
