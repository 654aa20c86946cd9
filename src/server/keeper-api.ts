// The SDK's operations over a link to the keeper, terminals and screens included: for `holdfast mcp`.

import type { Api } from '../client/api.ts';
import { connectKeeper, type ConnectOptions } from '../keeper/connect.ts';
import type { Owner } from '../protocol/host-api.ts';
import { apiOf } from '../terminals/in-process-api.ts';
import { reconnectingHost } from './reconnecting-host.ts';

/** Starts the keeper if none is running. Closing it ends no process. */
export async function keeperApi(options: ConnectOptions, owner: Owner): Promise<Api> {
  const host = reconnectingHost(() => connectKeeper(options));
  await host.link();
  return apiOf(host, { folder: options.home, env: options.env, owner });
}
