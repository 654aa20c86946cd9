// The server of a host behind a gateway, for tests: callers talk to the gateway, and processes run at the host.

import { rmSync } from 'node:fs';
import { systemClock } from '../../src/base/clock.ts';
import { openGateway } from '../../src/fleet/gateway/gateway.ts';
import { gatewayLink } from '../../src/fleet/gateway/gateway-link.ts';
import { Joiner } from '../../src/fleet/member/joiner.ts';
import { startServer, type RunningServer, type ServerOptions } from '../../src/server/server.ts';
import { seen, uniqueName } from './fleet.ts';
import { stopKeeper } from './hosts.ts';
import { NatsServer } from './nats.ts';

export interface GatewayServer {
  readonly server: RunningServer;
  readonly host: RunningServer;
  readonly name: string;
  /** The host leaves and comes back. */
  rejoin(): Promise<void>;
  stop(): Promise<void>;
}

/** `options` are those of the gateway's server; the host has the same directory and environment. */
export async function serveByGateway(
  options: ServerOptions,
  owners?: readonly string[],
): Promise<GatewayServer> {
  const { home, env, report = () => undefined, keeperArgs = [], defaultDirectory } = options;
  const nats = await NatsServer.start();
  const servers = [nats.url];
  const hostHome = `${home}-host`;
  const host = await startServer({
    home: hostHome,
    env,
    keeperArgs,
    report,
    ...(defaultDirectory !== undefined && { defaultDirectory }),
    ...(options.detachMs !== undefined && { detachMs: options.detachMs }),
  });
  const name = uniqueName('h');
  const join = (): Joiner =>
    new Joiner({
      name,
      servers,
      owners,
      report,
      clock: systemClock,
      host: host.host,
      serve: host.serveStream,
    });
  let joiner = join();
  const gateway = openGateway({ name: uniqueName('g'), servers, report, settleMs: 0 });
  await gateway.settled;
  await seen(gateway, name, 'here');
  const { keeperArgs: _keeper, ...rest } = options;
  const server = await startServer({
    ...rest,
    gateway: { ...gateway, link: gatewayLink(gateway) },
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= (async () => {
      await server.close();
      await joiner.close();
      await host.close();
      await nats.remove();
    })();
    return closing;
  };
  return {
    server: { ...server, close },
    host,
    name,
    rejoin: async () => {
      await joiner.close();
      await seen(gateway, name, 'gone');
      joiner = join();
      await seen(gateway, name, 'here');
    },
    stop: async () => {
      await close();
      await stopKeeper(hostHome);
      rmSync(hostHome, { recursive: true, force: true });
    },
  };
}
