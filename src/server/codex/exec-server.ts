// A drop-in replacement for `codex exec-server`: on a port of its own or on stdin and stdout, in front of the keeper of
// a home.

import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { systemClock, type Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { connectKeeper, type KeeperArguments } from '../../keeper/connect.ts';
import { openHome } from '../../keeper/home.ts';
import { createDoor } from '../http/door.ts';
import { bracketed, closeDoor, hostNames, isLoopback, listenTcp } from '../http/listen.ts';
import { scheduleLoading } from '../lazy-modules.ts';
import { readyRoute } from '../ready-route.ts';
import { Router } from '../http/router.ts';
import { reconnectingHost, type ReconnectingHost } from '../reconnecting-host.ts';
import { codexOpener, codexOptions } from './codex.ts';
import { codexRoute } from './route.ts';
import { CodexConnection, type CodexOptions } from './connection.ts';
import { LineWire } from './wire/line-wire.ts';
import type { Bearer } from '../http/tokens.ts';
import { wsAuth, type WsAuthOptions } from './ws-auth.ts';

export interface ExecServerOptions {
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly report: (message: string) => void;
  readonly clock?: Clock;
  readonly keeperArgs?: KeeperArguments;
  readonly detachMs?: number | undefined;
  readonly graceMs?: number | undefined;
  /** Handles requests one after the other. */
  readonly serial?: boolean;
  readonly bubblewrap?: string | undefined;
}

export interface ListenOptions extends ExecServerOptions {
  /** "ws://IP:PORT" */
  readonly listen: string;
  readonly auth: WsAuthOptions;
  readonly allowRemote?: boolean;
}

export interface RunningExecServer {
  /** Includes the token if it was created here. */
  readonly url: string;
  close(): Promise<void>;
}

/** In the home. Created once, so that a URL stays valid when the server is restarted on its port. */
const TOKEN_FILE = 'exec-server.token';

export async function listenExecServer(options: ListenOptions): Promise<RunningExecServer> {
  const { address, port } = parseListen(options.listen);
  refuseUnsafeBind(address, options);
  const home = openHome(options.home).folder;
  const { clock = systemClock, auth, report } = options;
  const admission = wsAuth(auth, join(home, TOKEN_FILE), clock);
  const { token } = admission;
  const { host, codex, owner } = await openCodex(options, home);
  const within = (bearer: Bearer | undefined): Bearer | undefined =>
    bearer && owner !== undefined ? { ...bearer, owner } : bearer;
  const hosts = new Set<string>();
  const open = codexOpener(codex);
  const door = createDoor({
    router: new Router([codexRoute('/', async () => open), readyRoute]),
    policy: {
      hosts,
      origins: new Set(),
      bearer: (given) => within(admission.bearer(given)),
      anyone: within(admission.anyone),
    },
    kind: 'tcp',
    maxBodyBytes: 0,
    report,
  });
  const bound = await listenTcp(door, port, address).catch(async (error: unknown) => {
    await host.close();
    throw error;
  });
  for (const name of hostNames(address)) hosts.add(`${name}:*`);
  const query = token === undefined ? '' : `/?token=${token}`;
  const cancelLoading = scheduleLoading(systemClock, report, ['webSockets', 'toml']);
  return {
    url: `ws://${bracketed(address)}:${bound}${query}`,
    close: async () => {
      cancelLoading();
      await closeDoor(door);
      await host.close();
    },
  };
}

/** Serves two streams until the input ends. Then it ends the client's processes, as codex's server does. */
export async function serveExecServerStdio(
  options: ExecServerOptions,
  input: Readable,
  output: Writable,
): Promise<void> {
  const { host, codex, owner } = await openCodex(options, openHome(options.home).folder);
  const caller = { tokenId: 'stdio', owner: owner ?? EVERYONE, admin: owner === undefined };
  await new Promise<void>((resolve) => {
    const connection: CodexConnection = new CodexConnection(
      codex,
      caller,
      (listener) =>
        new LineWire(input, output, {
          received: (text) => listener.received(text),
          ended: () => void connection.finish().then(resolve),
        }),
    );
  });
  await host.close();
}

async function openCodex(
  options: ExecServerOptions,
  home: string,
): Promise<{ host: ReconnectingHost; codex: CodexOptions; owner: Owner | undefined }> {
  const { env, keeperArgs = [], clock = systemClock, cwd, report, detachMs, graceMs } = options;
  const host = reconnectingHost(() => connectKeeper({ home, env, keeperArgs }));
  // Fails before anything is promised to a client.
  const { keeper } = await host.link();
  const { serial = false, bubblewrap } = options;
  return {
    host,
    // Inside a process of this keeper, its sessions belong to the owner of that process.
    owner: keeper.scope && (keeper.scope.owner ?? ''),
    codex: codexOptions({
      host,
      clock,
      home,
      env,
      report,
      cwd,
      detachMs,
      graceMs,
      serial,
      bubblewrap,
    }),
  };
}

function parseListen(listen: string): { address: string; port: number } {
  const match = /^ws:\/\/(?:\[([^\]]+)\]|([^:/[\]]+)):(\d{1,5})\/?$/.exec(listen);
  const address = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3]);
  if (isIP(address) === 0 || !(port <= 65_535))
    throw new HoldfastError(
      'invalid_input',
      `exec-server: --listen takes "ws://IP:PORT" or "stdio", not "${listen}".`,
    );
  return { address, port };
}

function refuseUnsafeBind(address: string, { auth, allowRemote }: ListenOptions): void {
  if (isLoopback(address)) return;
  if (auth.kind === 'none')
    throw new HoldfastError('forbidden', 'Without a token the server binds to loopback only.');
  if (!allowRemote)
    throw new HoldfastError(
      'forbidden',
      `${address} can be reached by others: put TLS in front and say --allow-remote.`,
    );
}
