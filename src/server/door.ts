// A door: HTTP on one listening socket. Every request passes the gate first; then it gets its route, its body within
// bounds, and a signal that says when the client has gone. No time limit cuts an answer that is being waited for.

import { Server, ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { systemClock } from '../base/clock.ts';
import { HoldfastError, errors, type ErrorCode } from '../protocol/errors.ts';
import { chatOf } from './chat.ts';
import { gate, type Caller, type GatePolicy, type Knock } from './gate.ts';
import { plainDialect } from './plain-dialect.ts';
import { bodyless, GONE, hasBody, readBody } from './request-body.ts';
import { JsonText, type Dialect, type Exchange, type Router } from './router.ts';
import { Strangers, type StrangerLimits } from './strangers.ts';
import { becomeSocket, wantsSocket } from './upgrade.ts';

export interface DoorOptions {
  readonly router: Router;
  readonly policy: GatePolicy;
  readonly kind: Knock['door'];
  readonly maxBodyBytes: number;
  readonly report: (message: string) => void;
  /** Told of every request when it begins. */
  readonly begun?: (() => void) | undefined;
  /** Told of every request when it is over. */
  readonly access?: ((entry: AccessEntry) => void) | undefined;
  readonly patience?: Patience;
  /** How many connections may be open that have not shown a valid token. */
  readonly strangers?: StrangerLimits;
}

/** One line of an access log. No token and no query is ever in it; "-" stands for what was no request at all. */
export interface AccessEntry {
  readonly method: string;
  readonly path: string;
  /** 499: the client went away before there was an answer. */
  readonly status: number;
  readonly ms: number;
  /** The row that answered; absent when no handler was entered. */
  readonly route?: string;
  readonly refusal?: ErrorCode;
  readonly tokenId?: string;
  readonly chatId?: string;
  readonly ancestorChatIds?: readonly string[];
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
  server.on('connection', (socket) => strangers.came(socket));
  const unanswered = new WeakMap<Duplex, number>();
  const count = (socket: Duplex, more: number): void =>
    void unanswered.set(socket, (unanswered.get(socket) ?? 0) + more);
  const answered = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    count(socket, 1);
    response.once('close', () => count(socket, -1));
    void answer(request, response, { ...options, strangers });
  };
  server.on('request', answered);
  // Otherwise Node would ask for the body before the gate has looked.
  server.on('checkContinue', answered);
  // Node hands such a connection over whole. It gets an answer like any other, by the same way and through the same gate.
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    server.upgraded(socket);
    // Nobody may change the protocol of a connection on which an answer is still due: there is no way to send both.
    if ((unanswered.get(socket) ?? 0) > 0) socket.destroy();
    else void answer(request, responseOn(socket, request), { ...options, strangers }, head);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable) return;
    const problem = protocolProblem(error.code);
    socket.end(`HTTP/1.1 ${problem}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    options.access?.({ method: '-', path: '-', status: Number.parseInt(problem, 10), ms: 0 });
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

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: Omit<DoorOptions, 'strangers'> & { readonly strangers: Strangers },
  /** What came behind the request, when it asks for another protocol. */
  head?: Buffer,
): Promise<void> {
  let dialect: Dialect = plainDialect;
  const gone = new Gone(response);
  const note = watchAccess(request, response, options);
  try {
    const { method = '', headers, rawHeaders } = request;
    const target = targetOf(request.url ?? '');
    dialect = options.router.dialectOf(target.path) ?? plainDialect;
    const asSocket =
      head !== undefined && wantsSocket(request) && options.router.takesSockets(target.path);
    const queryToken = asSocket ? (target.query.get('token') ?? undefined) : undefined;
    const anonymous = options.router.anonymous(method, target.path);
    const knock = { method, headers, rawHeaders, queryToken, anonymous, door: options.kind };
    const caller = gate(knock, options.policy);
    note.caller = caller;
    options.strangers.passed(request.socket);
    const { route, params } = options.router.match(method, target.path);
    route.dialect?.admit?.(headers, caller);
    if (asSocket && route.socket) {
      const { query } = target;
      note.route = `${route.method} ${route.path}`;
      note.upgraded();
      await becomeSocket(route.socket, { caller, request, response, params, query, head });
      return;
    }
    // Nobody else reads this connection, and only reading tells that the client has gone.
    if (head) request.socket.resume();
    const limits = { maxBytes: options.maxBodyBytes, dialect };
    const body = head ? bodyless(request) : await readBody(request, response, limits);
    note.route = `${route.method} ${route.path}`;
    const { query } = target;
    const exchange = new DoorExchange({ caller, request, response, params, query, body }, gone);
    const value = await route.handler(exchange);
    if (value !== undefined)
      send(response, 200, value instanceof JsonText ? value.text : dialect.encode(value));
  } catch (error) {
    note.refusal = error instanceof HoldfastError ? error.code : 'internal';
    refuse(error, { request, response, dialect, report: options.report });
  }
}

/** Whether the client has gone before its answer was complete. Listened for from the beginning of the request. */
class Gone {
  private readonly response: ServerResponse;
  private controller: AbortController | undefined;

  constructor(response: ServerResponse) {
    this.response = response;
    response.once('close', () => {
      if (!response.writableFinished) this.controller?.abort(GONE);
    });
  }

  /** Made for those who look at it: most requests are answered before anybody could go. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.response.destroyed && !this.response.writableFinished) this.controller.abort(GONE);
    return this.controller.signal;
  }
}

class DoorExchange implements Exchange {
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Exchange['params'];
  readonly query: URLSearchParams;
  readonly body: Buffer;
  private readonly whetherGone: Gone;

  constructor(parts: Omit<Exchange, 'gone'>, gone: Gone) {
    ({
      caller: this.caller,
      request: this.request,
      response: this.response,
      params: this.params,
      query: this.query,
      body: this.body,
    } = parts);
    this.whetherGone = gone;
  }

  get gone(): AbortSignal {
    return this.whetherGone.signal;
  }
}

interface AccessNote {
  /** The answer is another protocol, and never over as an answer is. */
  upgraded(): void;
  caller?: Caller;
  route?: string;
  refusal?: ErrorCode;
}

/** What becomes known of a request on its way, told when its answer is over. */
function watchAccess(
  request: IncomingMessage,
  response: ServerResponse,
  { begun, access }: Pick<DoorOptions, 'begun' | 'access'>,
): AccessNote {
  const startedUs = systemClock.nowUs();
  begun?.();
  const note: AccessNote = { upgraded: () => over(101) };
  response.once('close', () => over(response.headersSent ? response.statusCode : 499));
  const over = (status: number): void => {
    if (!access) return;
    const { caller, route, refusal } = note;
    const chat = caller && chatOf(request.headers);
    access({
      method: request.method ?? '',
      path: (request.url ?? '').split('?', 1)[0] ?? '',
      status,
      ms: (systemClock.nowUs() - startedUs) / 1000,
      ...(route !== undefined && { route }),
      ...(refusal !== undefined && { refusal }),
      ...(caller && { tokenId: caller.tokenId }),
      ...(chat && { chatId: chat.id }),
      ...(chat && chat.ancestors.length > 0 && { ancestorChatIds: chat.ancestors }),
    });
  };
  return note;
}

function targetOf(url: string): { path: string; query: URLSearchParams } {
  // Only origin-form: an absolute target carries a second host name past the check of the first.
  if (!url.startsWith('/'))
    throw new HoldfastError('forbidden', 'The request target must be a path.');
  const at = url.indexOf('?');
  if (at < 0) return { path: url, query: new URLSearchParams() };
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) };
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
