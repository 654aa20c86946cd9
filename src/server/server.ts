// The server: the doors of one home, in front of its keeper. It holds nothing that a restart would lose.

import { rmSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { systemClock, type Clock } from '../base/clock.ts';
import { VERSION } from '../base/version.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type HostApi } from '../protocol/host-api.ts';
import { MAX_SOCKET_PATH_BYTES } from '../system/private-folder.ts';
import { readEntry } from '../system/proc-table.ts';
import { connectKeeper } from '../keeper/connect.ts';
import { openHome, type Home } from '../keeper/home.ts';
import { UnreadAnswers, type AnswerLimits } from './http/unread-answers.ts';
import { CompletionWebhook, type WebhookTarget } from './completion-webhook.ts';
import { openDialects } from './dialects.ts';
import { createDoor, type DoorOptions } from './http/door.ts';
import type { GatePolicy } from './http/gate.ts';
import { loadLater } from './lazy-modules.ts';
import {
  bracketed,
  closeDoor,
  hostNames,
  isLoopback,
  listenTcp,
  listenUnix,
} from './http/listen.ts';
import { Metrics } from './metrics.ts';
import { Router } from './http/router.ts';
import { takeServerLock, type LastServer } from './server-lock.ts';
import type { StartRateOptions } from './start-rate.ts';
import { steadyHost, type ReconnectingHost } from './reconnecting-host.ts';
import { secretIn, Tokens } from './http/tokens.ts';
import type { AccessEntry } from './http/request-context.ts';

export interface ServerOptions {
  readonly home: string;
  /** What the keeper inherits if this server has to start it. */
  readonly env: NodeJS.ProcessEnv;
  /** 0: any free port. */
  readonly port?: number;
  /** Another port will do when that one is in use. */
  readonly anyPort?: boolean;
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
  /** The options of a server that died here, from what it was given; those are taken instead of these. */
  readonly resume?: (again: readonly string[]) => ServerOptions;
  /** Origins of pages that may ask, each as a browser sends it; by default none. */
  readonly origins?: readonly string[];
  /** Told to end: no keeper is started from then on. */
  readonly signal?: AbortSignal | undefined;
  /** How fast one token may start processes. */
  readonly startRate?: StartRateOptions;
  /** How much is kept for clients that do not read, and how long. */
  readonly answers?: Partial<AnswerLimits>;
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
  readonly openToAll: boolean;
  readonly host: ReconnectingHost;
  /** What it answers to: "GET /a/:id". */
  readonly routes: readonly string[];
  /** Ends the server alone: the keeper and its processes go on. */
  close(): Promise<void>;
}

const DEFAULT_ADDRESS = '127.0.0.1';
const MAX_BODY_BYTES = 1024 * 1024;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  refuseUnsafeBind(options);
  const home = openHome(options.home);
  const socket = socketPath(options.socket, home);
  const held = new Held();
  try {
    const ours = socket === home.serverSocket;
    const { lock, last } = ours ? takeServerLock(home.folder) : {};
    let told = false;
    held.add(() => {
      // The options of one that was told to end, end with it.
      if (told) lock?.forget();
      lock?.release();
    });
    const taken = last && options.resume ? resumed(last, options.resume) : options;
    const { signal } = options;
    const server = await open({ ...taken, signal }, { home, socket, held });
    const { pid } = process;
    const startTicks = readEntry(pid)?.startTicks ?? 0;
    lock?.note({ pid, startTicks, url: server.url, again: taken.again ?? [] });
    const close = (): Promise<void> => {
      told = true;
      return server.close();
    };
    return { ...server, close };
  } catch (error) {
    await held.release();
    throw error;
  }
}

/** As the server that died here was started, on its port where that is free. */
function resumed(
  { url, again }: LastServer,
  resume: (again: readonly string[]) => ServerOptions,
): ServerOptions {
  try {
    const options = resume(again);
    refuseUnsafeBind(options);
    if (options.port !== undefined) return options;
    return { ...options, port: Number(new URL(url).port), anyPort: true };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const { code, message, details } = error;
    const where = 'These are the options of the server that ended unasked here';
    const problem = `${message} ${where}: start one with "holdfast serve" and the options you want.`;
    throw new HoldfastError(code, problem, details);
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
  readonly socket: string | undefined;
  readonly held: Held;
}

async function open(options: ServerOptions, place: Place): Promise<RunningServer> {
  const { home, socket, held } = place;
  const { address = DEFAULT_ADDRESS } = options;
  const clock = options.clock ?? systemClock;
  const tokens = new Tokens(home.folder, clock);
  const { env, keeperArgs = [], signal } = options;
  const host = steadyHost(() => connectKeeper({ home: home.folder, env, keeperArgs, signal }));
  held.add(() => host.close());
  const { keeper } = await host.link();
  const metrics = new Metrics();
  const report = options.report ?? (() => undefined);
  const parts = { host, clock, metrics, report, home: home.folder, maxBodyBytes: MAX_BODY_BYTES };
  const isValid = (tokenId: string): boolean => tokens.isValid(tokenId);
  const dialects = await openDialects({ ...options, ...parts, isValid });
  held.add(() => dialects.close());
  const router = new Router(dialects.routes);
  const hosts = new Set(options.allowHosts?.map(checkedHost));
  const policy: GatePolicy = {
    hosts,
    origins: new Set(options.origins),
    bearer: (token) => tokens.bearer(token),
    ...(options.openToAll && { anyone: { tokenId: 'anyone', owner: EVERYONE } }),
  };
  const door: Omit<DoorOptions, 'kind'> = {
    router,
    policy,
    maxBodyBytes: MAX_BODY_BYTES,
    report,
    metrics,
    access: options.access,
    room: new UnreadAnswers(options.answers),
  };
  const tcp = createDoor({ ...door, kind: 'tcp' });
  held.add(() => closeDoor(tcp));
  const port = await listenTcp(tcp, options.port ?? 0, address).catch((error: unknown) => {
    if (!options.anyPort || !(error instanceof HoldfastError)) throw error;
    if (error.code !== 'port_in_use') throw error;
    report(`${error.message} Another is taken.`);
    return listenTcp(tcp, 0, address);
  });
  for (const name of hostNames(address))
    hosts.add(isLoopback(name.replace(/^\[|\]$/g, '')) ? `${name}:*` : `${name}:${port}`);
  await openSocket(door, place);
  openWebhook(options, place, { host, clock, report });
  held.add(() => dialects.leave());
  held.add(loadLater(systemClock, report));
  return {
    url: `http://${bracketed(address)}:${port}`,
    socket,
    tokenFile: tokens.adminFile,
    keeperPid: keeper.pid,
    home: home.folder,
    version: VERSION,
    openToAll: options.openToAll ?? false,
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
  const isPrivate = [home.folder, dirname(home.serverSocket)].includes(dirname(socket));
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

function refuseUnsafeBind({
  address = DEFAULT_ADDRESS,
  openToAll,
  allowRemote,
}: ServerOptions): void {
  if (isIP(address) === 0 && address !== 'localhost') {
    throw new HoldfastError('invalid_input', `"${address}" is not an IP address.`, {
      field: 'address',
    });
  }
  if (isLoopback(address)) return;
  if (openToAll)
    throw new HoldfastError('forbidden', 'Without tokens the server binds to loopback only.');
  if (!allowRemote) {
    throw new HoldfastError('forbidden', `${address} can be reached by others.`, {
      remedy: 'Put TLS in front of it, and allow it with --allow-remote.',
    });
  }
}

/** A name without a port, with one, or with any (`:*`). No pattern of names: that would let other names in. */
function checkedHost(host: string): string {
  if (/^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:\d{1,5}|:\*)?$/.test(host)) return host;
  throw new HoldfastError('invalid_input', `"${host}" is not a host name in lower case.`, {
    field: 'allowHosts',
  });
}

function socketPath(wanted: string | undefined, home: Home): string | undefined {
  if (wanted === 'none') return undefined;
  if (wanted === undefined) return home.serverSocket;
  const path = resolve(wanted);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
  const problem = `The path of a socket has at most ${MAX_SOCKET_PATH_BYTES} bytes: ${path} is longer.`;
  throw new HoldfastError('invalid_input', problem, { field: 'socket' });
}
