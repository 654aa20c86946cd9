// A door: HTTP on one listening socket. Every request passes the gate first. Then it gets its route, its bounded body,
// and a signal that aborts when the client disconnects. No timeout cuts an answer that a client waits for.

import { Server, ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from '../../base/clock.ts';
import { HoldfastError, errors } from '../../protocol/errors.ts';
import { UnreadAnswers, JSON_HEADERS, LARGE_BYTES, sendBytes } from './unread-answers.ts';
import { answerPreflight, isPreflight, allowPageToRead } from './cors.ts';
import { gate, refuseUnshared, type GatePolicy, type GateRequest } from './gate.ts';
import { plainDialect } from './json-dialect.ts';
import { bodyless, discardRest, hasBody, readBody } from './request-body.ts';
import { JsonText, type Dialect, type Router } from './router.ts';
import { Pipeline } from './pipeline.ts';
import { UnprovenConnections, type UnprovenLimits } from './unproven-connections.ts';
import { prepareSocket, wantsSocket } from './upgrade.ts';
import { AuthorizedRequest, RequestContext, type Watchers } from './request-context.ts';

export interface DoorOptions extends Watchers {
  readonly router: Router;
  readonly policy: GatePolicy;
  readonly kind: GateRequest['door'];
  readonly maxBodyBytes: number;
  readonly report: (message: string) => void;
  readonly patience?: Partial<Patience>;
  /** Limits on connections that have not shown a valid token. */
  readonly unproven?: UnprovenLimits;
  /** Shared by the doors of one server. */
  readonly unread?: UnreadAnswers;
}

/** Timeouts for senders, in milliseconds. */
interface Patience {
  readonly headers: number;
  /** For the whole request, including its body. */
  readonly request: number;
  readonly idle: number;
  /** How often the timeouts of headers and requests are checked. Node does it also while nobody is connected. */
  readonly check: number;
  /** Between our last byte and the end of the connection, while the client keeps its side open. */
  readonly linger: number;
}

/** How long an idle connection is kept for the next request. */
export const IDLE_MS = 65_000;
/** Slow senders of headers and bodies are cut off; slow answers are not. */
const PATIENCE: Patience = {
  headers: 10_000,
  request: 30_000,
  idle: IDLE_MS,
  check: 15_000,
  linger: 1000,
};
const MAX_CONNECTIONS = 20_000;

export function createDoor(options: DoorOptions): Server {
  const patience = { ...PATIENCE, ...options.patience };
  const server = new DoorServer({
    noDelay: true,
    keepAlive: true,
    headersTimeout: patience.headers,
    requestTimeout: patience.request,
    keepAliveTimeout: patience.idle,
    maxHeaderSize: 16 * 1024,
    connectionsCheckingInterval: patience.check,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = 0;
  const unproven = new UnprovenConnections(systemClock, options.unproven);
  const uploads = new WeakSet<Duplex>();
  const unread = options.unread ?? new UnreadAnswers();
  const deps: DoorDeps = { ...options, unproven, unread, uploads };
  const pipelines = new WeakMap<Duplex, Pipeline>();
  server.on('connection', (socket) => {
    unproven.add(socket);
    pipelines.set(socket, new Pipeline(socket));
  });
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    const pipeline = pipelines.get(socket) ?? new Pipeline(socket);
    const context = new RequestContext(request, response, deps, pipeline);
    response.once('close', () => {
      uploads.delete(socket);
      context.closed();
      pipeline.answered();
    });
    pipeline.begin(() => void answer(context, deps));
  };
  server.on('request', handle);
  // By default Node asks for the body (100 Continue) before the gate has seen the request.
  server.on('checkContinue', handle);
  // Node hands the raw socket over. The request is handle the same way and through the same gate as any other.
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    server.upgraded(socket);
    // While an answer is due, the connection cannot change its protocol: both cannot be sent.
    if (pipelines.get(socket)?.isBusy === true) {
      socket.destroy();
      return;
    }
    const response = responseOn(socket, request, patience.linger);
    const context = new RequestContext(request, response, deps);
    response.once('close', () => context.closed());
    void answer(context, deps, head);
  });
  answerProtocolErrors(server, options, { patience, uploads });
  return server;
}

function answerProtocolErrors(
  server: Server,
  options: DoorOptions,
  { patience, uploads }: { readonly patience: Patience; readonly uploads: WeakSet<Duplex> },
): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable) return;
    // Node limits the time of the whole request. It reports this once, and leaves the connection to us.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && uploads.has(socket)) return;
    const problem = protocolProblem(error.code);
    endThenDestroy(
      socket,
      patience.linger,
      `HTTP/1.1 ${problem}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    const status = Number.parseInt(problem, 10);
    options.metrics?.count(status);
    options.access?.({ method: '-', path: '-', status, ms: 0 });
  });
}

/** Node forgets upgraded connections. This class tracks them, so that closing the server closes them too. */
class DoorServer extends Server {
  private readonly sockets = new Set<Duplex>();

  upgraded(socket: Duplex): void {
    this.sockets.add(socket);
    // 'close' follows, and the listeners of 'close' handle it.
    socket.on('error', () => undefined);
    socket.once('close', () => this.sockets.delete(socket));
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const socket of this.sockets) socket.destroy();
  }
}

function responseOn(socket: Duplex, request: IncomingMessage, lingerMs: number): ServerResponse {
  const response = new ServerResponse(request);
  // Node's parser has left this connection, so it cannot read a second request.
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.once('finish', () => endThenDestroy(socket, lingerMs));
  return response;
}

/**
 * Sends the last bytes and ends our side. A client that never closes its own side would keep the descriptor open, so
 * the socket is destroyed after a short time in which the client can read the answer.
 */
function endThenDestroy(socket: Duplex, lingerMs: number, last?: string): void {
  socket.end(last);
  const cancel = systemClock.after(lingerMs, () => socket.destroy());
  socket.once('close', cancel);
}

function protocolProblem(code: string | undefined): string {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return '408 Request Timeout';
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large';
  return '400 Bad Request';
}

type DoorDeps = Omit<DoorOptions, 'unproven' | 'unread'> & {
  readonly unproven: UnprovenConnections;
  readonly unread: UnreadAnswers;
  /** Connections whose handler reads the body: it has a time limit of its own. */
  readonly uploads: WeakSet<Duplex>;
};

/** Whether a request shows who sends it, or need not. */
function shows(
  request: Pick<GateRequest, 'anonymous' | 'headers' | 'queryToken' | 'credential'>,
): boolean {
  const { anonymous, headers, queryToken, credential } = request;
  if (anonymous === true) return true;
  if (credential) return 'bearer' in credential || credential.token !== undefined;
  return headers.authorization !== undefined || queryToken !== undefined;
}

async function answer(
  context: RequestContext,
  { router, policy, kind, unproven, maxBodyBytes, report, unread, uploads }: DoorDeps,
  /** The bytes that followed an upgrade request. */
  head?: Buffer,
): Promise<void> {
  const { request, response, path } = context;
  let dialect: Dialect = plainDialect;
  try {
    const { method = '', headers, rawHeaders } = request;
    // Only origin-form: an absolute target would carry a second host name past the check of the Host header.
    if (!path.startsWith('/'))
      throw new HoldfastError('forbidden', 'The request target must be a path.');
    const match = router.match(method, path);
    dialect = match?.route.dialect ?? router.dialectOf(path) ?? plainDialect;
    const socket = head && wantsSocket(request) ? match?.route.socket : undefined;
    const queryToken = socket && (context.query.get('token') ?? undefined);
    const preflight = isPreflight(method, headers);
    const anonymous = preflight || match?.route.anonymous === true;
    allowPageToRead(headers, policy.origins, response);
    const credential = anonymous ? undefined : dialect.credential?.(request, path);
    const shown = { anonymous, headers, queryToken, credential };
    const peer =
      kind === 'private' && !shows(shown) ? await policy.peer?.(request.socket) : undefined;
    const caller = gate({ method, rawHeaders, door: kind, peer, ...shown }, policy);
    context.caller = caller;
    // A route without a token proves nothing about the sender: the connection stays unproven.
    if (!anonymous) unproven.markProven(request.socket);
    if (preflight) {
      answerPreflight(headers, router.methodsAt(path), response);
      return;
    }
    if (!match) throw router.refusal(path);
    const { route, params } = match;
    refuseUnshared(caller, route, params);
    route.dialect?.admit?.(headers, caller);
    if (head && socket) {
      const { query } = context;
      const markProven = (): void => unproven.markProven(request.socket);
      const asked = { caller, request, params, query, markProven };
      const becomeSocket = await prepareSocket(socket, asked);
      if (response.destroyed) return;
      context.route = match.name;
      context.upgraded();
      becomeSocket({ ...asked, response, head });
      return;
    }
    // Nobody else reads this connection, and only a read notices that the client disconnected.
    if (head) request.socket.resume();
    const limits = { maxBytes: route.maxBodyBytes ?? maxBodyBytes, dialect, kind: route.body };
    if (route.body === 'stream') uploads.add(request.socket);
    const body = head ? bodyless(request) : await readBody(request, response, limits);
    context.route = match.name;
    const exchange = new AuthorizedRequest(context, { caller, params, body, unread });
    const value = await context.handle(() => route.handler(exchange));
    if (value === undefined) return;
    const text = value instanceof JsonText ? value.text : dialect.encode(value);
    if (text.length <= LARGE_BYTES) send(response, 200, text);
    else await sendBytes(exchange, JSON_HEADERS, Buffer.from(text));
  } catch (error) {
    context.refusal = error instanceof HoldfastError ? error.code : 'internal';
    refuse(error, { request, response, dialect, report });
  }
}

function refuse(
  thrown: unknown,
  to: {
    request: IncomingMessage;
    response: ServerResponse;
    dialect: Dialect;
    report: (message: string) => void;
  },
): void {
  const { request, response, dialect } = to;
  if (response.destroyed || response.writableEnded) return;
  const error = thrown instanceof HoldfastError ? thrown : internal(thrown, to.report);
  if (response.headersSent) {
    // The status has been sent; the only way left to report a failure is to cut the stream.
    response.destroy();
    return;
  }
  const { status, body } = dialect.error(error);
  if (typeof error.details['allow'] === 'string')
    response.setHeader('Allow', error.details['allow']);
  if (errors[error.code].http === 401) response.setHeader('WWW-Authenticate', 'Bearer');
  if (typeof error.details['retryAfterMs'] === 'number')
    response.setHeader('Retry-After', Math.ceil(error.details['retryAfterMs'] / 1000));
  // The body was not read, so the connection cannot be used for another request.
  const isUnread = hasBody(request) && !request.complete;
  if (isUnread) response.setHeader('Connection', 'close');
  const text = dialect.encode(body);
  // Only after the gate: a client without a token is not waited for.
  if (!isUnread || error.code !== 'too_large') return send(response, status, text);
  writeHead(response, status, text);
  response.write(text);
  discardRest(request, () => response.end());
}

function internal(thrown: unknown, report: (message: string) => void): HoldfastError {
  report(
    `unexpected: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`,
  );
  return new HoldfastError('internal', 'Something went wrong inside the server.');
}

function send(response: ServerResponse, status: number, text: string): void {
  if (response.destroyed || response.writableEnded) return;
  writeHead(response, status, text);
  // As a string: Node then sends head and body in one write.
  response.end(text);
}

function writeHead(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(text) });
}
