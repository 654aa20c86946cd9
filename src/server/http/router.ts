// The routes of the server: one row per method and path. A path names its parameters with ":"; what matches no row is
// answered with what there would have been.

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { WebSocket } from 'ws';
import { HoldfastError } from '../../protocol/errors.ts';
import type { UnreadAnswers } from './unread-answers.ts';
import type { Caller } from './gate.ts';

export interface Exchange {
  readonly caller: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The body, parsed by nobody yet; empty for a request without one. */
  readonly body: Buffer;
  /** Aborted when the client goes away. */
  readonly gone: AbortSignal;
  /** Where large answers are counted. */
  readonly room: UnreadAnswers;
}

/** An answer that has become JSON already, because many get the same. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Answers with a value that becomes JSON, or writes the response itself and answers nothing. */
type Handler = (exchange: Exchange) => Promise<unknown>;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly handler: Handler;
  /** Needs no token: it tells nothing and does nothing. */
  readonly anonymous?: true;
  /** Where a dialect takes larger bodies than the others. */
  readonly maxBodyBytes?: number;
  /** For a GET that asks to become a WebSocket; without it the handler answers such a request too. */
  readonly socket?: SocketRow;
  /** What the errors of this route look like, where a dialect has its own. */
  readonly dialect?: Dialect;
}

export interface SocketRow {
  /** A larger message ends the connection. */
  readonly maxMessageBytes: number;
  /** Called once the WebSocket is open. What it throws ends the connection. */
  open(socket: WebSocket, asked: Asked): void;
}

/** What is known of a request that became a WebSocket. */
export type Asked = Pick<Exchange, 'caller' | 'request' | 'params' | 'query'>;

export interface Dialect {
  /** Bodies without a Content-Type are taken as JSON. */
  readonly lenientType?: boolean;
  /** Throws when this caller may not ask with these headers: before the body is read. */
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
    for (const { path, dialect } of routes) if (dialect) this.dialects.set(prefixOf(path), dialect);
  }

  get routes(): string[] {
    return this.rows.map(({ name }) => name);
  }

  /** Undefined when nothing there takes this method; `refusal` says why. */
  match(method: string, path: string): Match | undefined {
    const parts = path.split('/');
    for (const { route, name, parts: pattern } of this.rows) {
      if (route.method !== method) continue;
      const params = matchParts(pattern, parts);
      if (params) return { route, name, params };
    }
    return undefined;
  }

  /** The methods that a path takes; throws `no_route` when there is nothing. */
  methodsAt(path: string): string[] {
    const parts = path.split('/');
    const there = this.rows.filter((row) => matchParts(row.parts, parts));
    if (there.length === 0) throw new HoldfastError('no_route', 'There is nothing at this path.');
    return Array.from(new Set(there.map(({ route }) => route.method)));
  }

  /** Why `match` found nothing: there is nothing at the path, or it takes other methods. */
  refusal(path: string): HoldfastError {
    const allow = this.methodsAt(path).join(', ');
    return new HoldfastError('method_not_allowed', `This path takes ${allow}.`, { allow });
  }

  /** The dialect that owns a path, even if nothing is there: so that its clients can read the refusal. */
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
