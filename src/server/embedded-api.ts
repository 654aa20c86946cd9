// The SDK's operations on a host in this process, terminals and screens included: for `embed()` and `mcp --embed`.

import { homedir } from 'node:os';
import type { Api } from '../client/api.ts';
import { Host } from '../host/host.ts';
import type { Limits } from '../protocol/limits.ts';
import { apiOf, type ApiOptions } from '../terminals/in-process-api.ts';

export interface EmbeddedOptions extends ApiOptions {
  readonly cwd: string;
  readonly limits?: Partial<Limits>;
}

/** No other host may use the folder at the same time. Closing it ends the processes. */
export async function embeddedApi(options: EmbeddedOptions): Promise<Api> {
  const { folder, env, cwd, limits = {} } = options;
  const surroundings = { env, cwd, home: homedir() };
  return apiOf(await Host.open({ folder, surroundings, limits }), options);
}
