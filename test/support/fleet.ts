// A fleet for tests: a gateway and hosts over a real NATS server, each host with a keeper of its own.

import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { systemClock } from '../../src/base/clock.ts';
import { randomId } from '../../src/base/ids.ts';
import { openGateway, type Gateway, type GatewayOptions } from '../../src/fleet/gateway/gateway.ts';
import type { HostState } from '../../src/fleet/gateway/host-table.ts';
import type { LedgerEntry } from '../../src/fleet/ledger/entries.ts';
import { LedgerTail } from '../../src/fleet/ledger/ledger-tail.ts';
import { Fabric } from '../../src/fleet/wire/fabric.ts';
import { Joiner, type JoinerOptions } from '../../src/fleet/member/joiner.ts';
import type { HostApi } from '../../src/protocol/host-api.ts';
import { inProcess, onCleanup, overKeeper, type MakeOptions } from './hosts.ts';
import { sharedNats } from './nats.ts';

const quiet = (): void => undefined;

export function uniqueName(kind: 'h' | 'g'): string {
  return `${kind}-${randomId().slice(0, 8)}`;
}

export async function joined(
  options: MakeOptions & Partial<JoinerOptions> = {},
): Promise<{ name: string; joiner: Joiner; host: HostApi }> {
  const host = options.host ?? (await overKeeper(options));
  const name = options.name ?? uniqueName('h');
  const servers = options.servers ?? [(await sharedNats()).url];
  const joiner = new Joiner({
    clock: systemClock,
    report: quiet,
    ...options,
    host,
    name,
    servers,
  });
  onCleanup(() => joiner.close());
  return { name, joiner, host };
}

export async function gatewayTo(
  names: readonly string[],
  options: Partial<GatewayOptions> = {},
): Promise<Gateway> {
  const servers = options.servers ?? [(await sharedNats()).url];
  const gateway = openGateway({
    name: uniqueName('g'),
    report: quiet,
    settleMs: 0,
    ...options,
    servers,
  });
  onCleanup(() => gateway.close());
  await gateway.settled;
  for (const name of names) await seen(gateway, name, 'here');
  return gateway;
}

/** Resolves when the gateway sees the host in this state. */
export async function seen(
  gateway: Gateway,
  name: string,
  state: HostState | 'gone',
): Promise<void> {
  const now = (): string => gateway.hosts().find((host) => host.name === name)?.state ?? 'gone';
  for (;;) {
    const changed = gateway.changed();
    if (now() === state) return;
    await changed;
  }
}

/** Resolves when the ledger has such an entry. */
export function written(
  options: Pick<GatewayOptions, 'servers' | 'authenticator'> & { readonly name: string },
  matches: (entry: LedgerEntry) => boolean,
): Promise<void> {
  const fabric = new Fabric({ ...options, clock: systemClock, report: quiet });
  onCleanup(() => fabric.close());
  return new Promise((resolve) => {
    const heard = (_: string, entry: LedgerEntry): void => {
      if (matches(entry)) resolve();
    };
    const tail = new LedgerTail({ fabric, clock: systemClock, report: quiet, heard });
    onCleanup(() => tail.close());
  });
}

/** One host behind a gateway, for the contract of HostApi. */
export async function overFleet(options: MakeOptions = {}): Promise<HostApi> {
  const { name } = await joined(options);
  // The contract is not about time: a busy machine needs longer for 25 MB of rows.
  const gateway = await gatewayTo([name], { listMs: 60_000 });
  return gateway.host;
}

/** Hosts in this program, each a member, and a gateway that sees all of them. */
export async function fleetOf(
  ...members: readonly (MakeOptions & Partial<JoinerOptions>)[]
): Promise<{ gateway: Gateway; api: HostApi; hosts: Awaited<ReturnType<typeof joined>>[] }> {
  const hosts = [];
  for (const options of members)
    hosts.push(await joined({ ...options, host: options.host ?? (await inProcess(options)) }));
  const gateway = await gatewayTo(hosts.map(({ name }) => name));
  return { gateway, api: gateway.host, hosts };
}

/** A link to NATS that a test can freeze: nothing passes, and no connection closes. */
export async function frozenLink(
  port: number,
): Promise<{ url: string; freeze: () => void; thaw: () => void }> {
  const sockets = new Set<Socket>();
  let frozen = false;
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk: Buffer) => to.write(chunk));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (frozen) from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onCleanup(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port: own } = server.address() as AddressInfo;
  const all = (act: (socket: Socket) => void): void => {
    for (const socket of sockets) act(socket);
  };
  return {
    url: `nats://127.0.0.1:${own}`,
    freeze: () => {
      frozen = true;
      all((socket) => socket.pause());
    },
    thaw: () => {
      frozen = false;
      all((socket) => socket.resume());
    },
  };
}
