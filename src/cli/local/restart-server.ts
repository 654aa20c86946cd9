// Replaces the server of a home by one of this program, with the same options and port.

import type { StartedServer } from '../../client/server-process.ts';
import type { Health } from '../../protocol/host-api.ts';
import type { Caller } from '../caller.ts';
import { endServer, lastServer, startServer } from './server.ts';

export interface Restarted {
  readonly ready: StartedServer;
  /** Of the keeper, which goes on. */
  readonly keeper: Health | undefined;
}

/** `typedPort` is called once the keeper has answered, and before anything is ended. */
export async function restartServer(
  caller: Caller,
  typedPort: (isSupervised: boolean) => number | undefined,
): Promise<Restarted> {
  await caller.refuseInside('restart the server');
  // A server cannot start without an answer from the keeper: the one that runs is not ended for nothing.
  const host = await caller.running();
  const keeper = await host?.health(caller.sees, {});
  const supervisor = host?.keeper.supervises === true ? host.serve : undefined;
  const given = typedPort(supervisor !== undefined);
  if (supervisor) {
    await endServer(caller.home);
    return { ready: (await supervisor()) as StartedServer, keeper };
  }
  const old = (await endServer(caller.home)) ?? (await lastServer(caller.home));
  const before = old && ['--last-port', new URL(old.url).port];
  const typed = given ?? (old?.portIsTyped ? new URL(old.url).port : undefined);
  const port = typed === undefined ? (before ?? []) : ['--port', String(typed)];
  const ready = await startServer(caller.home, [...(old?.again ?? []), ...port], caller.env);
  return { ready, keeper };
}
