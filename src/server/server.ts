// The server: the doors of one home, in front of its keeper. It holds nothing that a restart would lose.

import { rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { dirname, join } from 'node:path';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { ReleaseStack } from './release-stack.ts';
import { VERSION } from '../base/version.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type HostApi } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import type { LogSettings } from '../protocol/observe/log-settings.ts';
import { readEntry } from '../system/proc-table.ts';
import { connectKeeper, type KeeperArguments } from '../keeper/connect.ts';
import { openHome, type Home } from '../keeper/home.ts';
import { UnreadAnswers, type AnswerLimits } from './http/unread-answers.ts';
import { CompletionWebhook, type WebhookTarget } from './completion-webhook.ts';
import { PageSessions } from './dashboard/page-sessions.ts';
import { ownOrigins } from './dashboard/routes.ts';
import { openDialects } from './dialects.ts';
import { streamDoor, type FleetDoor, type StreamDoor } from './fleet-door.ts';
import { createDoor, type DoorOptions } from './http/door.ts';
import type { GatePolicy } from './http/gate.ts';
import { loadTelemetry, scheduleLoading } from './lazy-modules.ts';
import {
  bracketed,
  checkedHost,
  closeDoor,
  DEFAULT_ADDRESS,
  hostNames,
  isLoopback,
  listenTcp,
  listenUnix,
  refuseUnsafeBind,
  socketPath,
} from './http/listen.ts';
import { insideServer, isInside, localPeers } from './local-peers.ts';
import { Metrics } from './telemetry/metrics.ts';
import { Router } from './http/router.ts';
import { takeServerLock, type LastServer } from './server-lock.ts';
import { isTelemetryConfigured } from './telemetry/configured.ts';
import { openServerLog } from './telemetry/server-log.ts';
import type { Telemetry, TelemetryOptions } from './telemetry/telemetry.ts';
import type { StartRateOptions } from './start-rate.ts';
import { limitTotal, reconnectingHost, type ReconnectingHost } from './reconnecting-host.ts';
import { secretIn, Tokens, type Bearer } from './http/tokens.ts';
import type { AccessEntry } from './http/request-context.ts';

export interface ServerOptions {
  readonly home: string;
  /** The environment of a keeper that this server has to start. */
  readonly env: NodeJS.ProcessEnv;
  /** 0: any free port. */
  readonly port?: number;
  /** It was on the command line, and goes before that of the settings when the server is started again. */
  readonly portIsTyped?: boolean;
  /** If the port is in use, take a free one. */
  readonly anyPort?: boolean;
  readonly address?: string;
  /** A path, or "none". By default it lies in the home. */
  readonly socket?: string;
  /** A file with an admin token, created if it is missing. By default there is none. */
  readonly tokenFile?: string;
  readonly clock?: Clock;
  readonly report?: (message: string) => void;
  /** Called once for each request, when it has ended. */
  readonly access?: ((entry: AccessEntry) => void) | undefined;
  /** What goes into server.log; by default there is none. Only the server with the usual socket of the home has one. */
  readonly log?: LogSettings | undefined;
  readonly keeperArgs?: KeeperArguments;
  /** False: this server answers waiting clients itself. */
  readonly handOver?: boolean;
  /** The program bwrap, where it is in an unusual place. */
  readonly bubblewrap?: string;
  /** A ceiling for all processes together. */
  readonly limitsTotal?: Params<'enforcement'>['total'];
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
  /** Serves a fleet instead of the keeper of the home. */
  readonly gateway?: FleetDoor;
}

export interface RunningServer {
  readonly url: string;
  readonly socket: string | undefined;
  readonly tokenFile: string | undefined;
  readonly keeperPid: number;
  readonly home: string;
  readonly version: string;
  readonly openToAll: boolean;
  /** For callers that come by no route. */
  readonly host: ReconnectingHost;
  readonly report: (message: string) => void;
  /** "GET /a/:id" */
  readonly routes: readonly string[];
  /** Serves HTTP on a stream whose other end is this caller. */
  readonly serveStream: StreamDoor['serve'];
  /** Soon loads what only some clients need, before a new version may replace its files. */
  loadLateModules(): void;
  /** Ends only the server: the keeper and its processes continue. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 1024 * 1024;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  refuseUnsafeBind(options);
  const home = openHome(options.home);
  const socket = socketPath(options.socket, home.serverSocket);
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
    const { pid } = process;
    const log = lock && openLog(taken, home);
    releases.add(() => log?.close(closed ? 'it was asked to end' : 'it cannot serve'));
    const server = await open(
      { ...taken, ...(log && { report: log.report, access: log.access }), signal },
      { home, socket, releases },
    );
    log?.started(`pid ${pid}, version ${VERSION}, keeper ${server.keeperPid}, ${server.url}`);
    const startTicks = readEntry(pid)?.startTicks ?? 0;
    const { again = [], portIsTyped = false } = taken;
    const startedAtMs = Date.now();
    const { url, version } = server;
    lock?.note({ pid, startTicks, url, version, startedAtMs, again, portIsTyped });
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

function openLog(
  { log, clock = systemClock, report = () => undefined, access }: ServerOptions,
  home: Home,
) {
  return log && openServerLog(home, log, { clock, report, access });
}

/** The options of the server that died here, on its port if that is free. */
function resumeOptions(
  { url, again, portIsTyped }: LastServer,
  resume: (again: readonly string[]) => ServerOptions,
): ServerOptions {
  try {
    const options = resume(again);
    refuseUnsafeBind(options);
    const isDecided = options.port !== undefined && (options.portIsTyped || !portIsTyped);
    if (isDecided) return options;
    return { ...options, port: Number(new URL(url).port), anyPort: true };
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const { code, message, details } = error;
    const where = 'These are the options of the server that ended unasked here';
    const problem = `${message} ${where}: start one with "holdfast serve" and the options you want.`;
    throw new HoldfastError(code, problem, details);
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
  const report = options.report ?? (() => undefined);
  const telemetry = await openTelemetry({ env: options.env, clock, report });
  const host = openHost(options, home, telemetry);
  releases.add(() => host.close());
  releases.add(() => telemetry?.close());
  const { keeper } = await host.link();
  if (keeper.scope) throw insideServer(keeper.scope);
  const metrics = new Metrics();
  const { anyone, bearer } = bearersOf(options, tokens, pages);
  const access = { pages, tokens, bearer };
  const parts = { host, clock, metrics, report, maxBodyBytes: MAX_BODY_BYTES, ...access };
  const isValid = (tokenId: string): boolean => isInside(tokenId) || tokens.isValid(tokenId);
  const dialects = await openDialects({ ...options, ...parts, isValid, home: home.folder });
  releases.add(() => dialects.close());
  const router = new Router(dialects.routes);
  const hosts = new Set(options.allowHosts?.map(checkedHost));
  const origins = new Set(options.origins);
  const peer = localPeers(() => host.link());
  const policy: GatePolicy = { hosts, peer, origins, bearer, anyone };
  const door: Omit<DoorOptions, 'kind'> = {
    router,
    policy,
    maxBodyBytes: MAX_BODY_BYTES,
    report,
    metrics,
    tracer: telemetry?.tracer,
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
  telemetry?.open({ host, metrics, ...measuredBy(options, home) });
  return {
    url: `http://${bracketed(address)}:${port}`,
    socket,
    tokenFile: options.tokenFile,
    keeperPid: keeper.pid,
    home: home.folder,
    version: VERSION,
    openToAll: options.openToAll ?? false,
    host: dialects.host,
    report,
    routes: router.routes,
    serveStream: openStreams(door, context),
    loadLateModules: () => releases.add(scheduleLoading(systemClock, report)),
    close: () => releases.release(),
  };
}

async function openTelemetry(options: TelemetryOptions): Promise<Telemetry | undefined> {
  if (!isTelemetryConfigured(options.env)) return undefined;
  return (await loadTelemetry()).openTelemetry(options);
}

/** The keeper of the home, or the hosts of a fleet. */
function openHost(
  options: ServerOptions,
  { folder: home }: Home,
  telemetry: Telemetry | undefined,
): ReconnectingHost {
  const { env, keeperArgs = [], signal, gateway, limitsTotal } = options;
  return reconnectingHost(async () => {
    const link = gateway ? gateway.link : await connectKeeper({ home, env, keeperArgs, signal });
    if (limitsTotal) await limitTotal(link, limitsTotal);
    return telemetry?.traced(link) ?? link;
  });
}

/** What is measured beside the calls: the hosts of a fleet, or the home of the keeper. */
function measuredBy({ gateway }: ServerOptions, { folder: home }: Home) {
  return gateway ? { home: undefined, hosts: () => gateway.hosts() } : { home };
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

function openStreams(
  door: Omit<DoorOptions, 'kind'>,
  { releases }: ServerContext,
): StreamDoor['serve'] {
  const { serve, close } = streamDoor(door);
  releases.add(close);
  return serve;
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
