// The server: the doors of one home, in front of its keeper. It holds nothing that a restart would lose.

import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { VERSION } from '../base/version.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type CallerOrigin, type HostApi } from '../protocol/host-api.ts';
import { MAX_SOCKET_PATH_BYTES } from '../system/private-folder.ts';
import { readEntry } from '../system/proc-table.ts';
import { connectKeeper } from '../keeper/connect.ts';
import { openHome, type Home } from '../keeper/home.ts';
import { UnreadAnswers, type AnswerLimits } from './http/unread-answers.ts';
import { CompletionWebhook, type WebhookTarget } from './completion-webhook.ts';
import { PageSessions } from './dashboard/page-sessions.ts';
import { ownOrigins } from './dashboard/routes.ts';
import { openDialects } from './dialects.ts';
import { createDoor, type DoorOptions } from './http/door.ts';
import type { GatePolicy } from './http/gate.ts';
import { scheduleLoading } from './lazy-modules.ts';
import {
  bracketed,
  closeDoor,
  hostNames,
  isLoopback,
  listenTcp,
  listenUnix,
} from './http/listen.ts';
import { isInside, localPeers } from './local-peers.ts';
import { Metrics } from './metrics.ts';
import { Router } from './http/router.ts';
import { takeServerLock, type LastServer } from './server-lock.ts';
import type { StartRateOptions } from './start-rate.ts';
import { reconnectingHost, type ReconnectingHost } from './reconnecting-host.ts';
import { secretIn, Tokens, type Bearer } from './http/tokens.ts';
import type { AccessEntry } from './http/request-context.ts';

export interface ServerOptions {
  readonly home: string;
  /** The environment of a keeper that this server has to start. */
  readonly env: NodeJS.ProcessEnv;
  /** 0: any free port. */
  readonly port?: number;
  /** If the port is in use, take a free one. */
  readonly anyPort?: boolean;
  readonly address?: string;
  /** A path, or "none". By default it lies in the home. */
  readonly socket?: string;
  /** A file with an admin token, created if it is missing. By default there is none. */
  readonly tokenFile?: string;
  readonly clock?: Clock;
  readonly report?: (message: string) => void;
  /** The access log: called once for each request, when it has ended. */
  readonly access?: (entry: AccessEntry) => void;
  readonly keeperArgs?: readonly string[];
  /** The working directory of coder's commands that name none. */
  readonly defaultDirectory?: string;
  /** Needs no token. Loopback only; the caller prints a warning. */
  readonly openToAll?: boolean;
  /** Bind to an address that others can reach. The server has no TLS of its own: a proxy in front must provide it. */
  readonly allowRemote?: boolean;
  /** Further accepted values of the Host header, for a proxy in front. */
  readonly allowHosts?: readonly string[];
  /** Gets every completion, until it answers 2xx. */
  readonly webhook?: WebhookTarget;
  /** The options that a restart of this server must repeat. */
  readonly again?: readonly string[];
  /** Turns the options of a server that died here into options for this one, which replace all others. */
  readonly resume?: (again: readonly string[]) => ServerOptions;
  /** Accepted values of the Origin header; by default none. */
  readonly origins?: readonly string[];
  /** Aborts when the server is asked to end: no keeper is started after that. */
  readonly signal?: CancelSignal | undefined;
  /** How fast one token may start processes. */
  readonly startRate?: StartRateOptions;
  /** Limits on large answers that clients do not read. */
  readonly answers?: Partial<AnswerLimits>;
  /** How long a codex session outlives its connection. */
  readonly detachMs?: number;
  /** How often a stream without events gets a heartbeat. */
  readonly heartbeatMs?: number;
}

export interface RunningServer {
  readonly url: string;
  readonly socket: string | undefined;
  readonly tokenFile: string | undefined;
  readonly keeperPid: number;
  readonly home: string;
  readonly version: string;
  readonly openToAll: boolean;
  readonly host: ReconnectingHost;
  /** "GET /a/:id" */
  readonly routes: readonly string[];
  /** Ends only the server: the keeper and its processes continue. */
  close(): Promise<void>;
}

const DEFAULT_ADDRESS = '127.0.0.1';
const MAX_BODY_BYTES = 1024 * 1024;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  refuseUnsafeBind(options);
  const home = openHome(options.home);
  const socket = socketPath(options.socket, home);
  const releases = new ReleaseStack();
  try {
    const ours = socket === home.serverSocket;
    const { lock, last } = ours ? takeServerLock(home.folder) : {};
    let closed = false;
    releases.add(() => {
      // The options of a server that was shut down are not used again.
      if (closed) lock?.forget();
      lock?.release();
    });
    const taken = last && options.resume ? resumeOptions(last, options.resume) : options;
    const { signal } = options;
    const server = await open({ ...taken, signal }, { home, socket, releases });
    const { pid } = process;
    const startTicks = readEntry(pid)?.startTicks ?? 0;
    lock?.note({ pid, startTicks, url: server.url, again: taken.again ?? [] });
    const close = (): Promise<void> => {
      closed = true;
      return server.close();
    };
    return { ...server, close };
  } catch (error) {
    await releases.release();
    throw error;
  }
}

/** The options of the server that died here, on its port if that is free. */
function resumeOptions(
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

/** Releases what a server has taken, in reverse order. */
class ReleaseStack {
  private readonly releases: (() => Promise<void> | void)[] = [];

  add(release: () => Promise<void> | void): void {
    this.releases.push(release);
  }

  async release(): Promise<void> {
    for (const release of this.releases.splice(0).toReversed()) await release();
  }
}

interface ServerContext {
  readonly home: Home;
  readonly socket: string | undefined;
  readonly releases: ReleaseStack;
}

async function open(options: ServerOptions, context: ServerContext): Promise<RunningServer> {
  const { home, socket, releases } = context;
  const { address = DEFAULT_ADDRESS } = options;
  const clock = options.clock ?? systemClock;
  const tokens = new Tokens(home.folder, clock, { adminFile: options.tokenFile });
  const pages = new PageSessions(home.folder, clock);
  const { env, keeperArgs = [], signal } = options;
  const host = reconnectingHost(() =>
    connectKeeper({ home: home.folder, env, keeperArgs, signal }),
  );
  releases.add(() => host.close());
  const { keeper } = await host.link();
  if (keeper.scope) throw insideServer(keeper.scope);
  const metrics = new Metrics();
  const report = options.report ?? (() => undefined);
  const { anyone, bearer } = bearersOf(options, tokens, pages);
  const parts = { host, clock, metrics, report, pages, bearer, maxBodyBytes: MAX_BODY_BYTES };
  const isValid = (tokenId: string): boolean => isInside(tokenId) || tokens.isValid(tokenId);
  const dialects = await openDialects({ ...options, ...parts, isValid, home: home.folder });
  releases.add(() => dialects.close());
  const router = new Router(dialects.routes);
  const hosts = new Set(options.allowHosts?.map(checkedHost));
  const origins = new Set(options.origins);
  const policy: GatePolicy = {
    hosts,
    peer: localPeers(() => host.link()),
    origins,
    bearer,
    anyone,
  };
  const door: Omit<DoorOptions, 'kind'> = {
    router,
    policy,
    maxBodyBytes: MAX_BODY_BYTES,
    report,
    metrics,
    access: options.access,
    unread: new UnreadAnswers(options.answers),
  };
  const tcp = createDoor({ ...door, kind: 'tcp' });
  releases.add(() => closeDoor(tcp));
  const port = await openPort(tcp, options, report);
  addOwnNames({ hosts, origins }, address, port);
  await openSocket(door, context);
  openWebhook(options, context, { host, clock, report });
  releases.add(() => dialects.beginClosing());
  releases.add(scheduleLoading(systemClock, report));
  return {
    url: `http://${bracketed(address)}:${port}`,
    socket,
    tokenFile: options.tokenFile,
    keeperPid: keeper.pid,
    home: home.folder,
    version: VERSION,
    openToAll: options.openToAll ?? false,
    host,
    routes: router.routes,
    close: () => releases.release(),
  };
}

/** The port is known only once the door is open. */
function addOwnNames(
  { hosts, origins }: { readonly hosts: Set<string>; readonly origins: Set<string> },
  address: string,
  port: number,
): void {
  const names = hostNames(address);
  for (const name of names)
    hosts.add(isLoopback(name.replace(/^\[|\]$/g, '')) ? `${name}:*` : `${name}:${port}`);
  for (const origin of ownOrigins(names, port, hosts)) origins.add(origin);
}

/** Who a token speaks for, and who speaks without one where that is allowed. */
function bearersOf({ openToAll }: ServerOptions, tokens: Tokens, pages: PageSessions) {
  const anyone = openToAll ? { tokenId: 'anyone', owner: EVERYONE } : undefined;
  const bearer = (token: string | undefined): Bearer | undefined =>
    token === undefined ? anyone : (pages.bearer(token) ?? tokens.bearer(token));
  return { anyone, bearer };
}

async function openPort(
  server: Server,
  { port = 0, anyPort, address = DEFAULT_ADDRESS }: ServerOptions,
  report: (message: string) => void,
): Promise<number> {
  try {
    return await listenTcp(server, port, address);
  } catch (error) {
    if (!anyPort || !(error instanceof HoldfastError) || error.code !== 'port_in_use') throw error;
    report(`${error.message} Another is taken.`);
    return listenTcp(server, 0, address);
  }
}

/** It would speak for one owner only, and stand in the place of the server that speaks for all. */
function insideServer({ owner }: CallerOrigin): HoldfastError {
  const whose = owner === undefined ? '' : ` for the owner "${owner}"`;
  const problem = `A server cannot run inside a process that Holdfast started${whose}: it has to speak for every owner.`;
  return new HoldfastError('from_inside', problem, { ...(owner !== undefined && { owner }) });
}

async function openSocket(
  door: Omit<DoorOptions, 'kind'>,
  { home, socket, releases }: ServerContext,
): Promise<void> {
  if (socket === undefined) return;
  const isPrivate = [home.folder, dirname(home.serverSocket)].includes(dirname(socket));
  const unix = createDoor({ ...door, kind: isPrivate ? 'private' : 'socket' });
  await listenUnix(unix, socket);
  releases.add(() => rmSync(socket, { force: true }));
  releases.add(() => closeDoor(unix));
}

function openWebhook(
  { webhook }: ServerOptions,
  { home, releases }: ServerContext,
  parts: { readonly host: HostApi; readonly clock: Clock; readonly report: (text: string) => void },
): void {
  if (!webhook) return;
  const secret = secretIn(join(home.folder, 'webhook.key'));
  const webhookClient = new CompletionWebhook({ ...parts, target: webhook, secret });
  releases.add(() => webhookClient.close());
  webhookClient.open();
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

/**
 * A name without a port, with one, or with any (`:*`). Wildcards in names are refused: they would accept foreign names.
 */
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
