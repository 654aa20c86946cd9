// A door: HTTP on one listening socket. Every request passes the gate first; then it gets its route, its body within
// bounds, and a signal that says when the client has gone. No time limit cuts an answer that is being waited for.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { HoldfastError, errors } from '../protocol/errors.ts';
import { gate, type GatePolicy, type Knock } from './gate.ts';
import { plainDialect } from './plain-dialect.ts';
import type { Dialect, Router } from './router.ts';

export interface DoorOptions {
  readonly router: Router;
  readonly policy: GatePolicy;
  readonly kind: Knock['door'];
  readonly maxBodyBytes: number;
  readonly report: (message: string) => void;
}

/** Slow senders of headers and bodies are cut off; slow answers are not. */
const HEADERS_TIMEOUT_MS = 10_000;
const BODY_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS = 65_000;
const MAX_CONNECTIONS = 20_000;

export function createDoor(options: DoorOptions): Server {
  const server = createServer({
    noDelay: true,
    keepAlive: true,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: BODY_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    maxHeaderSize: 16 * 1024,
    connectionsCheckingInterval: 2000,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = 0;
  server.on('request', (request, response) => void answer(request, response, options));
  // An upgrade that nobody takes is refused like any request; without a listener Node would leave it hanging.
  server.on('upgrade', (_request, socket) =>
    socket.end('HTTP/1.1 426 Upgrade Required\r\nConnection: close\r\n\r\n'),
  );
  server.on('clientError', (_error, socket) => {
    if (socket.writable)
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  });
  return server;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: DoorOptions,
): Promise<void> {
  let dialect: Dialect = plainDialect;
  try {
    const { method = '', headers, rawHeaders } = request;
    const target = targetOf(request.url ?? '');
    dialect = options.router.dialectOf(target.path) ?? plainDialect;
    const caller = gate({ method, headers, rawHeaders, door: options.kind }, options.policy);
    const { route, params } = options.router.match(method, target.path);
    const body = await readBody(request, options.maxBodyBytes, dialect);
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const exchange = {
      caller,
      request,
      response,
      params,
      query: target.query,
      body,
      gone: gone.signal,
    };
    const value = await route.handler(exchange);
    if (value !== undefined) send(response, 200, dialect.encode(value));
  } catch (error) {
    refuse(error, { request, response, dialect, report: options.report });
  }
}

function targetOf(url: string): { path: string; query: URLSearchParams } {
  // Only origin-form: an absolute target carries a second host name past the check of the first.
  if (!url.startsWith('/'))
    throw new HoldfastError('forbidden', 'The request target must be a path.');
  const at = url.indexOf('?');
  if (at < 0) return { path: url, query: new URLSearchParams() };
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) };
}

async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  dialect: Dialect,
): Promise<Buffer> {
  const {
    'content-length': length,
    'content-type': type,
    'transfer-encoding': transfer,
  } = request.headers;
  if (length === undefined && transfer === undefined) return Buffer.alloc(0);
  if (length === '0') return Buffer.alloc(0);
  if (Number(length ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const json =
    type === undefined ? dialect.lenientType === true : /^application\/json\s*(;|$)/i.test(type);
  if (!json) throw new HoldfastError('not_json', 'Only JSON bodies are taken.');
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(maxBytes: number): HoldfastError {
  return new HoldfastError('too_large', `The body is larger than ${maxBytes} bytes.`);
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
  // The body was not read: the connection cannot be used for another request.
  if (!request.complete) response.setHeader('Connection', 'close');
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
  const bytes = Buffer.from(text);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': bytes.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(bytes);
}
