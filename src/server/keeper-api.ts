// The SDK's operations over a link to the keeper, terminals and screens included: for `holdfast mcp`.

import { systemClock } from '../base/clock.ts';
import type { Api } from '../client/api.ts';
import { connectKeeper } from '../keeper/connect.ts';
import type { Owner } from '../protocol/host-api.ts';
import { inProcessApi } from '../terminals/in-process-api.ts';
import { Terminals } from '../terminals/terminals.ts';
import { reconnectingHost } from './reconnecting-host.ts';

export interface KeeperApiOptions {
  readonly home: string;
  /** What a keeper inherits that has to be started. */
  readonly env: NodeJS.ProcessEnv;
  readonly keeperArgs: readonly string[];
  readonly owner: Owner;
}

/** Starts the keeper if none is running. Closing it ends no process. */
export async function keeperApi(options: KeeperApiOptions): Promise<Api> {
  const { home, env, keeperArgs, owner } = options;
  const host = reconnectingHost(() => connectKeeper({ home, env, keeperArgs }));
  await host.link();
  const terminals = new Terminals(host, systemClock, home);
  const shell = env['SHELL'] || '/bin/sh';
  return {
    ...inProcessApi({ host, terminals, clock: systemClock, shell }, owner),
    close: async () => {
      await terminals.close();
      await host.close();
    },
  };
}
