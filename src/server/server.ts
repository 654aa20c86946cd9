// The server: the doors of one home, in front of its keeper. It holds nothing that a restart would lose.

import { rmSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock, type Clock } from '../base/clock.ts';
import { VERSION } from '../base/version.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { connectKeeper } from '../keeper/connect.ts';
import { openHome, type Home } from '../keeper/home.ts';
import { coderRoutes } from './coder.ts';
import { createDoor, type AccessEntry, type DoorOptions } from './door.ts';
import type { GatePolicy } from './gate.ts';
import { Metrics } from './metrics.ts';
import { nativeRoutes, type NativeOptions } from './native.ts';
import { Router, type Route } from './router.ts';
import { takeServerLock } from './server-lock.ts';
import { StartRate, type StartRateOptions } from './start-rate.ts';
import { steadyHost, type SteadyHost } from './steady-host.ts';
import { Terminals } from './terminals/terminals.ts';
import { Tokens } from './tokens.ts';

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
  /** How fast one token may start processes. */
  readonly startRate?: StartRateOptions;
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
    lock?.note({ pid: process.pid, url: server.url });
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
  const terminals = new Terminals(host, clock, home.folder);
  held.add(() => terminals.close());
  const router = new Router(routesOf(options, { host, clock, metrics, terminals }));
  await terminals.attendAll();
  const hosts = new Set<string>();
  const policy: GatePolicy = {
    hosts,
    origins: new Set(),
    bearer: (token) => tokens.bearer(token),
    openToAll: options.openToAll ?? false,
  };
  const report = options.report ?? (() => undefined);
  const access = (entry: AccessEntry): void => {
    metrics.answered(entry);
    options.access?.(entry);
  };
  const door: Omit<DoorOptions, 'kind'> = {
    router,
    policy,
    maxBodyBytes: MAX_BODY_BYTES,
    report,
    access,
  };
  const tcp = createDoor({ ...door, kind: 'tcp' });
  held.add(() => closeDoor(tcp));
  const port = await listenTcp(tcp, options.port ?? 0, address);
  for (const name of hostNames(address)) hosts.add(`${name}:${port}`);
  const isPrivate = socket !== undefined && resolve(socket, '..') === home.folder;
  const unix =
    socket === undefined
      ? undefined
      : createDoor({ ...door, kind: isPrivate ? 'private' : 'socket' });
  if (unix && socket !== undefined) {
    await listenUnix(unix, socket);
    held.add(() => rmSync(socket, { force: true }));
    held.add(() => closeDoor(unix));
  }
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

function routesOf(
  { defaultDirectory, heartbeatMs, startRate, env }: ServerOptions,
  parts: Pick<NativeOptions, 'host' | 'clock' | 'metrics' | 'terminals'>,
): Route[] {
  const { host, clock } = parts;
  const rate = new StartRate(clock, startRate);
  return [
    ...coderRoutes({ host, clock, startRate: rate, defaultDirectory }),
    ...nativeRoutes({
      ...parts,
      shell: env['SHELL'] || '/bin/sh',
      heartbeatMs,
      startRate: rate,
    }),
  ];
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

function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

/** Every name under which this address may be called. */
function hostNames(address: string): string[] {
  const loopback = ['127.0.0.1', 'localhost', '[::1]'];
  if (isLoopback(address)) return [...loopback, bracketed(address)];
  if (address !== '0.0.0.0' && address !== '::') return [bracketed(address)];
  // Numbers only: a page elsewhere can make a name of its own point here, but no number.
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return [...loopback, ...own.map((entry) => bracketed(entry.address))];
}

function bracketed(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

function socketPath(wanted: string | undefined, folder: string): string | undefined {
  if (wanted === 'none') return undefined;
  return wanted === undefined ? join(folder, SOCKET_NAME) : resolve(wanted);
}

function listenTcp(server: HttpServer, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, address, () => resolve((server.address() as AddressInfo).port));
  });
}

/** 0600 from the moment it exists. */
async function listenUnix(server: HttpServer, path: string): Promise<void> {
  rmSync(path, { force: true });
  const umask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
  } finally {
    process.umask(umask);
  }
}

function closeDoor(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
