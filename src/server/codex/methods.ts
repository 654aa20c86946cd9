// The table of codex methods that are not about processes, and the family of each method.

import { capabilityMethods } from './environment/capability-roots.ts';
import {
  environmentInfo,
  environmentMethods,
  type EnvironmentInfo,
} from './environment/environment.ts';
import { installedMethods } from './environment/installed-capabilities.ts';
import { fsMethods } from './fs/fs.ts';
import { httpMethods } from './http/request.ts';
import type { CodexSurroundings, MethodFamily, MethodTable } from './rpc.ts';

/** Extensions of ours, announced as capabilities. */
const processCapabilities = {
  processList: true,
  processResize: true,
  processCloseStdin: true,
  processAnySignal: true,
} as const;

export function describeEnvironment(surroundings: CodexSurroundings): EnvironmentInfo {
  const info = environmentInfo(surroundings);
  return { ...info, capabilities: { ...info.capabilities, ...processCapabilities } };
}

export function methodTable(surroundings: CodexSurroundings): MethodTable {
  return {
    ...fsMethods(surroundings),
    ...httpMethods(surroundings),
    ...capabilityMethods(surroundings),
    ...installedMethods(surroundings),
    ...environmentMethods(surroundings, () => describeEnvironment(surroundings)),
  };
}

export function familyOf(method: string): MethodFamily | undefined {
  const [first = '', second = ''] = method.split('/');
  if (first === 'process') return 'exec';
  if (first === 'fs') return 'filesystem';
  if (first === 'http') return 'http';
  if (first === 'environmentConfig') return 'environment config';
  if (first === 'environment')
    return second === 'status' ? 'environment status' : 'environment info';
  return first === 'capabilityRoots' || first === 'capabilities'
    ? 'capability discovery'
    : undefined;
}
