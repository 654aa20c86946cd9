// A door: HTTP on one listening socket. Every request passes the gate first; then it gets its route, its body within
// bounds, and a signal that says when the client has gone. No time limit cuts an answer that is being waited for.

import { Server, ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from '../base/clock.ts';
import { HoldfastError, errors } from '../protocol/errors.ts';
import { gate, type GatePolicy, type Knock } from './gate.ts';
import { plainDialect } from './plain-dialect.ts';
import { bodyless, hasBody, readBody } from './request-body.ts';
import { JsonText, type Dialect, type Router } from './router.ts';
import { Strangers, type StrangerLimits } from './strangers.ts';
import { becomeSocket, wantsSocket } from './upgrade.ts';
import { Entered, Visit, type Watchers } from './visit.ts';

export interface DoorOptions extends Watchers {
  readonly router: Router;
  readonly policy: GatePolicy;
  readonly kind: Knock['door'];
  readonly maxBodyBytes: number;
  readonly report: (message: string) => void;
  readonly patience?: Patience;
  /** How many connections may be open that have not shown a valid token. */
  readonly strangers?: StrangerLimits;
}

/** How long a sender may take, in milliseconds. */
interface Patience {
  readonly headers: number;
  /** For the whole request, its body included. */
  readonly request: number;
  readonly idle: number;
  /** How often that is looked at. */
  readonly check: number;
}

/** How long a connection is kept for the next request. */
export const IDLE_MS = 65_000;
/** Slow senders of headers and bodies are cut off; slow answers are not. */
const PATIENCE: Patience = { headers: 10_000, request: 30_000, idle: IDLE_MS, check: 2000 };
/** Of every answer in JSON. */
export const JSON_HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};
const MAX_CONNECTIONS = 20_000;

export function createDoor(options: DoorOptions): Server {
  const patience = options.patience ?? PATIENCE;
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
  const strangers = new Strangers(systemClock, options.strangers);
  const means: Means = { ...options, strangers };
  /** How many answers are still due on a connection. */
  const unanswered = new WeakMap<Duplex, { count: number }>();
  server.on('connection', (socket) => {
    strangers.came(socket);
    unanswered.set(socket, { count: 0 });
  });
  const answered = (request: IncomingMessage, response: ServerResponse): void => {
    const due = unanswered.get(request.socket) ?? { count: 0 };
    due.count += 1;
    const visit = new Visit(request, response, means);
    response.once('close', () => {
      due.count -= 1;
      visit.closed();
    });
    void answer(visit, means);
  };
  server.on('request', answered);
  // Otherwise Node would ask for the body before the gate has looked.
  server.on('checkContinue', answered);
  // Node hands such a connection over whole. It gets an answer like any other, by the same way and through the same gate.
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    server.upgraded(socket);
    // Nobody may change the protocol of a connection on which an answer is still due: there is no way to send both.
    if ((unanswered.get(socket)?.count ?? 0) > 0) {
      socket.destroy();
      return;
    }
    const response = responseOn(socket, request);
    const visit = new Visit(request, response, means);
    response.once('close', () => visit.closed());
    void answer(visit, means, head);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable) return;
    const problem = protocolProblem(error.code);
    socket.end(`HTTP/1.1 ${problem}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    const status = Number.parseInt(problem, 10);
    options.metrics?.count(status);
    options.access?.({ method: '-', path: '-', status, ms: 0 });
  });
  return server;
}

/** Node forgets a connection that was upgraded; this does not. */
class DoorServer extends Server {
  private readonly sockets = new Set<Duplex>();

  upgraded(socket: Duplex): void {
    this.sockets.add(socket);
    // Told by 'close', which follows.
    socket.on('error', () => undefined);
    socket.once('close', () => this.sockets.delete(socket));
  }

  override closeAllConnections(): void {
    super.closeAllConnections();
    for (const socket of this.sockets) socket.destroy();
  }
}

function responseOn(socket: Duplex, request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request);
  // Node's parser has left this connection: no second request can be read from it.
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.once('finish', () => socket.end());
  return response;
}

function protocolProblem(code: string | undefined): string {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return '408 Request Timeout';
  if (code === 'HPE_HEADER_OVERFLOW') return '431 Request Header Fields Too Large';
  return '400 Bad Request';
}

type Means = Omit<DoorOptions, 'strangers'> & { readonly strangers: Strangers };

async function answer(
  visit: Visit,
  { router, policy, kind, strangers, maxBodyBytes, report }: Means,
  /** What came behind the request, when it asks for another protocol. */
  head?: Buffer,
): Promise<void> {
  const { request, response, path } = visit;
  let dialect: Dialect = plainDialect;
  try {
    const { method = '', headers, rawHeaders } = request;
    // Only origin-form: an absolute target carries a second host name past the check of the first.
    if (!path.startsWith('/'))
      throw new HoldfastError('forbidden', 'The request target must be a path.');
    dialect = router.dialectOf(path) ?? plainDialect;
    const match = router.match(method, path);
    const socket = head && wantsSocket(request) ? match?.route.socket : undefined;
    const queryToken = socket && (visit.query.get('token') ?? undefined);
    const anonymous = match?.route.anonymous === true;
    const knock = { method, headers, rawHeaders, queryToken, anonymous, door: kind };
    const caller = gate(knock, policy);
    visit.caller = caller;
    strangers.passed(request.socket);
    if (!match) throw router.refusal(path);
    const { route, params } = match;
    route.dialect?.admit?.(headers, caller);
    if (head && socket) {
      visit.route = match.name;
      visit.upgraded();
      const { query } = visit;
      await becomeSocket(socket, { caller, request, response, params, query, head });
      return;
    }
    // Nobody else reads this connection, and only reading tells that the client has gone.
    if (head) request.socket.resume();
    const limits = { maxBytes: maxBodyBytes, dialect };
    const body = head ? bodyless(request) : await readBody(request, response, limits);
    visit.route = match.name;
    const value = await route.handler(new Entered(visit, { caller, params, body }));
    if (value !== undefined)
      send(response, 200, value instanceof JsonText ? value.text : dialect.encode(value));
  } catch (error) {
    visit.refusal = error instanceof HoldfastError ? error.code : 'internal';
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
    // In the middle of a stream there is no status left to say it with.
    response.destroy();
    return;
  }
  const { status, body } = dialect.error(error);
  if (typeof error.details['allow'] === 'string')
    response.setHeader('Allow', error.details['allow']);
  if (errors[error.code].http === 401) response.setHeader('WWW-Authenticate', 'Bearer');
  if (typeof error.details['retryAfterMs'] === 'number')
    response.setHeader('Retry-After', Math.ceil(error.details['retryAfterMs'] / 1000));
  // The body was not read: the connection cannot be used for another request.
  if (hasBody(request) && !request.complete) response.setHeader('Connection', 'close');
  send(response, status, dialect.encode(body));
}

function internal(thrown: unknown, report: (message: string) => void): HoldfastError {
  report(
    `unexpected: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`,
  );
  return new HoldfastError('internal', 'Something went wrong inside the server.');
}

function send(response: ServerResponse, status: number, text: string): void {
  if (response.destroyed || response.writableEnded) return;
  response.writeHead(status, { ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(text) });
  // As text: head and body then leave in one write.
  response.end(text);
}
