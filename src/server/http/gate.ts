// The gate: the one function in front of every door and route. It looks at a request before anything of it is parsed
// and answers who asks, or why not. What it does not let through is never seen by a handler.

import type { IncomingHttpHeaders } from 'node:http';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import type { Bearer } from './tokens.ts';

export interface GatePolicy {
  /** The names under which the TCP door may be addressed, with their port, "127.0.0.1:4100", or with any, "127.0.0.1:*". */
  readonly hosts: ReadonlySet<string>;
  /** Origins of pages that this server itself serves. */
  readonly origins: ReadonlySet<string>;
  bearer(token: string): Bearer | undefined;
  /** Who asks without a token. Only by an explicit, loud choice, and only on loopback. */
  readonly anyone?: Bearer | undefined;
}

export interface GateRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** How often each header was sent; a second Host or Authorization is an attack or a mistake. */
  readonly rawHeaders: readonly string[];
  /** From the query of a request for a WebSocket: pages and old clients cannot send headers with it. */
  readonly queryToken?: string | undefined;
  /** What is asked tells nothing and does nothing: no token is needed. */
  readonly anonymous?: boolean;
  /** private: the socket lies in a folder that only this user can enter. */
  readonly door: 'tcp' | 'private' | 'socket';
}

export interface Caller {
  readonly tokenId: string;
  readonly owner: Owner;
  readonly admin: boolean;
}

/** Headers that must not come twice: which of them counts would be anybody's guess. */
const SINGLE = new Set([
  'host',
  'origin',
  'authorization',
  'content-type',
  'content-length',
  'coder-chat-id',
  'holdfast-owner',
  'last-event-id',
  'sec-fetch-site',
]);

export function gate(asked: GateRequest, policy: GatePolicy): Caller {
  const { headers, door } = asked;
  refuseRepeated(asked.rawHeaders);
  if (door === 'tcp' && !isOurs(headers.host ?? '', policy.hosts)) {
    throw forbidden(refusedHost(headers.host ?? ''));
  }
  if (headers.origin !== undefined && !policy.origins.has(headers.origin)) {
    throw forbidden('Pages of that Origin may not ask; `--allow-origin` allows one.');
  }
  const site = headers['sec-fetch-site'];
  // With an Origin, that has decided. Without one it is no request of a page's script.
  if (headers.origin === undefined && (site === 'cross-site' || site === 'same-site')) {
    throw forbidden('Requests from other sites are not answered.');
  }
  if (asked.anonymous === true) return { tokenId: 'nobody', owner: '', admin: false };
  return whoAsks(asked, policy);
}

/** Any port, or none: a tunnel may end at another one. A page elsewhere can forge the name, never the port alone. */
function isOurs(host: string, hosts: ReadonlySet<string>): boolean {
  if (host.includes('*')) return false;
  return hosts.has(host) || hosts.has(`${host.replace(/:[1-9]\d{0,4}$/, '')}:*`);
}

/** Names the host only where it is one: what stands there is the caller's. */
function refusedHost(host: string): string {
  if (!/^[a-z0-9.[\]:-]{1,255}$/.test(host)) return 'This server does not answer to that Host.';
  return `This server does not answer to the Host "${host}"; \`--allow-host ${host}\` allows it.`;
}

function whoAsks({ headers, queryToken, door }: GateRequest, policy: GatePolicy): Caller {
  const token = tokenOf(headers) ?? queryToken;
  const bearer = token === undefined ? withoutToken(door, policy) : policy.bearer(token);
  if (!bearer) throw unauthorized('The token is not valid: unknown, revoked or expired.');
  const { tokenId, owner } = bearer;
  return { tokenId, owner, admin: owner === EVERYONE };
}

function withoutToken(door: GateRequest['door'], { anyone }: GatePolicy): Bearer {
  if (door === 'private') return { tokenId: door, owner: EVERYONE };
  if (!anyone) throw unauthorized('A token is needed.');
  return anyone;
}

function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  const match = /^Bearer ([\w.~+/=-]{1,512})$/i.exec(authorization);
  if (!match) throw unauthorized('The Authorization header must be "Bearer" and a token.');
  return match[1];
}

function refuseRepeated(rawHeaders: readonly string[]): void {
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) throw forbidden(`The header ${name} was sent twice.`);
    seen.add(name);
  }
}

function forbidden(message: string): HoldfastError {
  return new HoldfastError('forbidden', message);
}

function unauthorized(message: string): HoldfastError {
  return new HoldfastError('unauthorized', message);
}
