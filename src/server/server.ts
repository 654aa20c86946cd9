// The server: the doors of one home, in front of its keeper. It holds nothing that a restart would lose.

import { rmSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { systemClock, type Clock } from '../base/clock.ts';
import { VERSION } from '../base/version.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { HostApi } from '../protocol/host-api.ts';
import { readEntry } from '../host/proc-table.ts';
import { connectKeeper } from '../keeper/connect.ts';
import { openHome, type Home } from '../keeper/home.ts';
import { CompletionWebhook, type WebhookTarget } from './completion-webhook.ts';
import { openDialects } from './dialects.ts';
import { createDoor, type DoorOptions } from './door.ts';
import type { GatePolicy } from './gate.ts';
import { bracketed, closeDoor, hostNames, isLoopback, listenTcp, listenUnix } from './listen.ts';
import { Metrics } from './metrics.ts';
import { Router } from './router.ts';
import { takeServerLock } from './server-lock.ts';
import type { StartRateOptions } from './start-rate.ts';
import { steadyHost, type SteadyHost } from './steady-host.ts';
import { secretIn, Tokens } from './tokens.ts';
import type { AccessEntry } from './visit.ts';

export interface ServerOptions {
  readonly home: string;
  /** What the keeper inherits if this server has to start it. */
  readonly env: NodeJS.ProcessEnv;
  /** 0: any free port. */
  readonly port?: number;
  readonly address?: string;
  /** A path; or "none". By default in the home. */
  readonly socket?: string;
  readonly clock?: Clock;
  readonly report?: (message: string) => void;
  /** Told of every request when it is over: an access log. */
  readonly access?: (entry: AccessEntry) => void;
  readonly keeperArgs?: readonly string[];
  /** Where coder's commands run that name no directory. */
  readonly defaultDirectory?: string;
  /** No token is asked for. Loopback only; said loudly by whoever sets it. */
  readonly openToAll?: boolean;
  /** Bind to an address that others can reach, without TLS of our own: somebody in front has to bring it. */
  readonly allowRemote?: boolean;
  /** Further names under which a proxy in front addresses this server, as they stand in Host. */
  readonly allowHosts?: readonly string[];
  /** Told of every end, until it says that it has it. */
  readonly webhook?: WebhookTarget;
  /** What a restart of this server has to be given again. */
  readonly again?: readonly string[];
  /** Origins of pages that may ask, each as a browser sends it; by default none. */
  readonly origins?: readonly string[];
  /** How fast one token may start processes. */
  readonly startRate?: StartRateOptions;
  /** How long a codex session outlives its connection. */
  readonly detachMs?: number;
  /** How often a follower that gets nothing is told that the server is there. */
  readonly heartbeatMs?: number;
}

export interface RunningServer {
  readonly url: string;
  readonly socket: string | undefined;
  readonly tokenFile: string;
  readonly keeperPid: number;
  readonly home: string;
  readonly version: string;
  readonly host: SteadyHost;
  /** What it answers to: "GET /a/:id". */
  readonly routes: readonly string[];
  /** Ends the server alone: the keeper and its processes go on. */
  close(): Promise<void>;
}

const DEFAULT_ADDRESS = '127.0.0.1';
/** In the home: whoever can enter that folder needs no token. */
const SOCKET_NAME = 'server.sock';
const MAX_BODY_BYTES = 1024 * 1024;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const address = options.address ?? DEFAULT_ADDRESS;
  refuseUnsafeBind(address, options);
  const home = openHome(options.home);
  const socket = socketPath(options.socket, home.folder);
  const held = new Held();
  try {
    const ours = socket === join(home.folder, SOCKET_NAME);
    const lock = ours ? takeServerLock(home.folder) : undefined;
    held.add(() => lock?.release());
    const server = await open(options, { home, address, socket, held });
    const { pid } = process;
    const startTicks = readEntry(pid)?.startTicks ?? 0;
    lock?.note({ pid, startTicks, url: server.url, again: options.again ?? [] });
    return server;
  } catch (error) {
    await held.release();
    throw error;
  }
}

/** What a server holds, given back in the opposite order. */
class Held {
  private readonly releases: (() => Promise<void> | void)[] = [];

  add(release: () => Promise<void> | void): void {
    this.releases.push(release);
  }

  async release(): Promise<void> {
    for (const release of this.releases.splice(0).toReversed()) await release();
  }
}

interface Place {
  readonly home: Home;
  readonly address: string;
  readonly socket: string | undefined;
  readonly held: Held;
}

async function open(options: ServerOptions, place: Place): Promise<RunningServer> {
  const { home, address, socket, held } = place;
  const clock = options.clock ?? systemClock;
  const tokens = new Tokens(home.folder, clock);
  const { env, keeperArgs = [] } = options;
  const host = steadyHost(() => connectKeeper({ home: home.folder, env, keeperArgs }));
  held.add(() => host.close());
  const { keeper } = await host.link();
  const metrics = new Metrics();
  const report = options.report ?? (() => undefined);
  const parts = { host, clock, metrics, report, home: home.folder, maxBodyBytes: MAX_BODY_BYTES };
  const dialects = await openDialects({ ...options, ...parts });
  held.add(() => dialects.close());
  const router = new Router(dialects.routes);
  const hosts = new Set(options.allowHosts?.map(checkedHost));
  const policy: GatePolicy = {
    hosts,
    origins: new Set(options.origins),
    bearer: (token) => tokens.bearer(token),
    openToAll: options.openToAll ?? false,
  };
  const door: Omit<DoorOptions, 'kind'> = {
    router,
    policy,
    maxBodyBytes: MAX_BODY_BYTES,
    report,
    metrics,
    access: options.access,
  };
  const tcp = createDoor({ ...door, kind: 'tcp' });
  held.add(() => closeDoor(tcp));
  const port = await listenTcp(tcp, options.port ?? 0, address);
  for (const name of hostNames(address)) hosts.add(`${name}:${port}`);
  await openSocket(door, place);
  openWebhook(options, place, { host, clock, report });
  held.add(() => dialects.leave());
  return {
    url: `http://${bracketed(address)}:${port}`,
    socket,
    tokenFile: tokens.adminFile,
    keeperPid: keeper.pid,
    home: home.folder,
    version: VERSION,
    host,
    routes: router.routes,
    close: () => held.release(),
  };
}

async function openSocket(
  door: Omit<DoorOptions, 'kind'>,
  { home, socket, held }: Place,
): Promise<void> {
  if (socket === undefined) return;
  const isPrivate = resolve(socket, '..') === home.folder;
  const unix = createDoor({ ...door, kind: isPrivate ? 'private' : 'socket' });
  await listenUnix(unix, socket);
  held.add(() => rmSync(socket, { force: true }));
  held.add(() => closeDoor(unix));
}

function openWebhook(
  { webhook }: ServerOptions,
  { home, held }: Place,
  parts: { readonly host: HostApi; readonly clock: Clock; readonly report: (text: string) => void },
): void {
  if (!webhook) return;
  const secret = secretIn(join(home.folder, 'webhook.key'));
  const teller = new CompletionWebhook({ ...parts, target: webhook, secret });
  held.add(() => teller.close());
  teller.open();
}

function refuseUnsafeBind(address: string, { openToAll, allowRemote }: ServerOptions): void {
  if (isIP(address) === 0 && address !== 'localhost') {
    throw new HoldfastError('invalid_input', `"${address}" is not an IP address.`, {
      field: 'address',
    });
  }
  if (isLoopback(address)) return;
  if (openToAll)
    throw new HoldfastError('forbidden', 'Without tokens the server binds to loopback only.');
  if (!allowRemote) {
    throw new HoldfastError(
      'forbidden',
      `${address} can be reached by others: put TLS in front and allow it explicitly.`,
    );
  }
}

/** A name with or without a port, and no pattern: what stands for many names lets strangers in. */
function checkedHost(host: string): string {
  if (/^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:\d{1,5})?$/.test(host)) return host;
  throw new HoldfastError('invalid_input', `"${host}" is not a host name in lower case.`, {
    field: 'allowHosts',
  });
}

function socketPath(wanted: string | undefined, folder: string): string | undefined {
  if (wanted === 'none') return undefined;
  return wanted === undefined ? join(folder, SOCKET_NAME) : resolve(wanted);
}
