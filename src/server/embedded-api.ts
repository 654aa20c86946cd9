// The SDK's operations on a host in this process, terminals and screens included: for `embed()` and `mcp --embed`.

import { homedir } from 'node:os';
import { systemClock } from '../base/clock.ts';
import type { Api } from '../client/api.ts';
import { Host } from '../host/host.ts';
import type { Owner } from '../protocol/host-api.ts';
import type { Limits } from '../protocol/limits.ts';
import { inProcessApi } from '../terminals/in-process-api.ts';
import { Terminals } from '../terminals/terminals.ts';

export interface EmbeddedOptions {
  /** The folder of the journals; no other host may use it at the same time. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly owner: Owner;
  readonly limits?: Partial<Limits>;
}

/** Closing it ends the processes. */
export async function embeddedApi(options: EmbeddedOptions): Promise<Api> {
  const { folder, env, cwd, owner, limits = {} } = options;
  const surroundings = { env, cwd, home: homedir() };
  const host = await Host.open({ folder, surroundings, limits });
  const terminals = new Terminals(host, systemClock, folder);
  const shell = env['SHELL'] || '/bin/sh';
  return {
    ...inProcessApi({ host, terminals, clock: systemClock, shell }, owner),
    close: async () => {
      await terminals.close();
      await host.close();
    },
  };
}
