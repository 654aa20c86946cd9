// The routes of the server: one row per method and path. A path names its parameters with ":". A request that matches
// no row is refused with the methods that the path does take.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { CancelSignal } from '../../base/cancel-signal.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { UnreadAnswers } from './unread-answers.ts';
import type { Caller } from './gate.ts';
import type { Bearer } from './tokens.ts';

export interface Exchange {
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The raw body; empty for a request without one. */
  readonly body: Buffer;
  /** Aborts when the client disconnects. */
  readonly gone: CancelSignal;
  /** Where large answers are counted. */
  readonly unread: UnreadAnswers;
  /** Calls `listener` for each request that the client sends on this connection before this one is finished. */
  onNext(listener: () => void): void;
}

/** An answer that is already JSON text, because many clients get the same. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns a value that becomes JSON, or writes the response itself and returns undefined. */
type Handler = (exchange: Exchange) => Promise<unknown>;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly handler: Handler;
  /** Needs no token: the route reveals nothing and changes nothing. */
  readonly anonymous?: true;
  /** Reads the process in its path and changes nothing: a shared link may use it. */
  readonly shared?: true;
  /** For dialects that take larger bodies than the default. */
  readonly maxBodyBytes?: number;
  /** any: a bounded body of any content type. stream: the handler reads the request itself, at its own pace. */
  readonly body?: 'any' | 'stream';
  /** Handles a GET that asks to become a WebSocket; without it, `handler` answers such a request too. */
  readonly socket?: SocketRow;
  /** The format of this route's errors, if its dialect has its own. */
  readonly dialect?: Dialect;
}

export type SocketRow =
  | {
      /** A larger message ends the connection. */
      readonly maxMessageBytes: number;
      /** Called before the handshake, for each connection: a failure is still an HTTP error. */
      load(): Promise<SocketOpener>;
    }
  | { readonly relay: SocketRelay };

/** Makes the handshake itself. A failure before it returns is still an HTTP error. */
export type SocketRelay = (
  request: SocketRequest,
) => Promise<(socket: Duplex, head: Buffer) => void>;

/** Called once the WebSocket is open. If it throws, the connection ends. */
export type SocketOpener = (socket: WebSocket, request: SocketRequest) => void;

/** A request that became a WebSocket. */
export type SocketRequest = Pick<Exchange, 'caller' | 'request' | 'params' | 'query'> & {
  /** For a socket without a token that has shown one in a message: its connection is no longer unproven. */
  readonly markProven?: () => void;
};

/** What a request shows instead of a bearer token: a token, a caller that the dialect has identified, or nothing. */
export type Credential = { readonly token?: string } | { readonly bearer: Bearer };

export interface Dialect {
  /** Owns every path that begins so, by default the first parts of its routes. */
  readonly prefix?: string;
  /** Where clients of this dialect put their token; by default in the Authorization header. */
  credential?(request: IncomingMessage, path: string): Credential;
  /** Bodies without a Content-Type are taken as JSON. */
  readonly lenientType?: boolean;
  /** Throws if this caller may not send these headers. Called before the body is read. */
  admit?(headers: IncomingHttpHeaders, caller: Caller): void;
  encode(value: unknown): string;
  error(error: HoldfastError): { status: number; body: unknown };
}

interface Row {
  readonly route: Route;
  /** "GET /a/:id" */
  readonly name: string;
  readonly parts: readonly string[];
}

export interface Match extends Pick<Row, 'route' | 'name'> {
  readonly params: Record<string, string>;
}

export class Router {
  private readonly rows: readonly Row[];
  private readonly dialects = new Map<string, Dialect>();

  constructor(routes: readonly Route[]) {
    this.rows = routes.map((route) => {
      const { method, path } = route;
      return { route, name: `${method} ${path}`, parts: path.split('/') };
    });
    for (const { path, dialect } of routes)
      if (dialect) this.dialects.set(dialect.prefix ?? prefixOf(path), dialect);
  }

  get routes(): string[] {
    return this.rows.map(({ name }) => name);
  }

  /** Undefined if no route takes this method; `refusal` then gives the error. */
  match(method: string, path: string): Match | undefined {
    const parts = path.split('/');
    for (const { route, name, parts: pattern } of this.rows) {
      if (route.method !== method) continue;
      const params = matchParts(pattern, parts);
      if (params) return { route, name, params };
    }
    return undefined;
  }

  /** The methods that a path takes; throws `no_route` if there are none. */
  methodsAt(path: string): string[] {
    const parts = path.split('/');
    const there = this.rows.filter((row) => matchParts(row.parts, parts));
    if (there.length === 0) throw new HoldfastError('no_route', 'There is nothing at this path.');
    return Array.from(new Set(there.map(({ route }) => route.method)));
  }

  /** The error when `match` found nothing: no such path, or other methods only. */
  refusal(path: string): HoldfastError {
    const allow = this.methodsAt(path).join(', ');
    return new HoldfastError('method_not_allowed', `This path takes ${allow}.`, { allow });
  }

  /** The dialect that owns a path, even if no route is there, so that its clients can read the error. */
  dialectOf(path: string): Dialect | undefined {
    for (const [prefix, dialect] of this.dialects) if (path.startsWith(prefix)) return dialect;
    return undefined;
  }
}

function prefixOf(path: string): string {
  return path.split('/').slice(0, 4).join('/');
}

function matchParts(
  pattern: readonly string[],
  parts: readonly string[],
): Record<string, string> | undefined {
  if (pattern.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const part = parts[index] ?? '';
    if (expected.startsWith(':')) {
      const value = decode(part);
      if (value === undefined || value === '') return undefined;
      params[expected.slice(1)] = value;
    } else if (expected !== part) return undefined;
  }
  return params;
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
