// The gate: the one function in front of every door and route. It checks a request before any of it is parsed, and
// returns the caller or throws. No handler sees a refused request.

import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import type { Credential } from './router.ts';
import type { Bearer } from './tokens.ts';

export interface GatePolicy {
  /**
   * Accepted values of the Host header on the TCP door: with a port ("127.0.0.1:4100") or with any port
   * ("127.0.0.1:*").
   */
  readonly hosts: ReadonlySet<string>;
  /** Accepted values of the Origin header. */
  readonly origins: ReadonlySet<string>;
  bearer(token: string): Bearer | undefined;
  /** The caller on the socket in the home, by the process at the other end. */
  readonly peer?: (socket: Socket) => Promise<Bearer>;
  /** The caller without a token. Only by an explicit option, and only on loopback. */
  readonly anyone?: Bearer | undefined;
}

export interface GateRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** To count repeated headers: a second Host or Authorization is an attack or a mistake. */
  readonly rawHeaders: readonly string[];
  /** From the query of a WebSocket request: pages and old clients cannot send headers with it. */
  readonly queryToken?: string | undefined;
  /** Of a dialect whose clients do not use the Authorization header for it. */
  readonly credential?: Credential | undefined;
  /** The route reveals nothing and changes nothing, so it needs no token. */
  readonly anonymous?: boolean;
  /** private: the socket lies in a folder that only this user can enter. */
  readonly door: 'tcp' | 'private' | 'socket';
  /** Who is at the other end of a private socket. */
  readonly peer?: Bearer | undefined;
}

export interface Caller {
  readonly tokenId: string;
  readonly owner: Owner;
  readonly admin: boolean;
  /** It only reads these processes, through routes that are marked as shared. */
  readonly only?: readonly string[];
  /** Of a caller at a gateway: what its tokens there allow, beside those of this host. */
  readonly ceiling?: Bearer['ceiling'];
}

/** Headers that must not be repeated: it would be ambiguous which one counts. */
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

export function gate(gateRequest: GateRequest, policy: GatePolicy): Caller {
  const { headers, door } = gateRequest;
  refuseRepeated(gateRequest.rawHeaders);
  if (door === 'tcp' && !isAllowedHost(headers.host ?? '', policy.hosts)) {
    throw forbidden(refusedHost(headers.host ?? ''));
  }
  if (headers.origin !== undefined && !policy.origins.has(headers.origin)) {
    throw forbidden('Pages of that Origin may not ask; `--allow-origin` allows one.');
  }
  const site = headers['sec-fetch-site'];
  // An Origin was checked above. Without one, the request does not come from a page's script.
  if (headers.origin === undefined && (site === 'cross-site' || site === 'same-site')) {
    throw forbidden('Requests from other sites are not answered.');
  }
  if (gateRequest.anonymous === true) return { tokenId: 'nobody', owner: '', admin: false };
  return identifyCaller(gateRequest, policy);
}

/**
 * A host that is allowed with `:*` matches any port or none, because a tunnel may end at another port. A foreign page
 * can forge the name, but never the port alone.
 */
function isAllowedHost(host: string, hosts: ReadonlySet<string>): boolean {
  if (host.includes('*')) return false;
  return hosts.has(host) || hosts.has(`${host.replace(/:[1-9]\d{0,4}$/, '')}:*`);
}

/** Repeats the host only if it is well-formed: the text is the caller's. */
function refusedHost(host: string): string {
  if (!/^[a-z0-9.[\]:-]{1,255}$/.test(host)) return 'This server does not answer to that Host.';
  return `This server does not answer to the Host "${host}"; \`--allow-host ${host}\` allows it.`;
}

function identifyCaller(request: GateRequest, policy: GatePolicy): Caller {
  const bearer = bearerOf(request, policy);
  if (!bearer) throw unauthorized('The token is not valid: unknown, revoked or expired.');
  const { tokenId, owner, only, ceiling } = bearer;
  const caller = {
    tokenId,
    owner,
    admin: owner === EVERYONE && only === undefined,
    ...(ceiling && { ceiling }),
  };
  return only ? { ...caller, only } : caller;
}

/** A shared link reaches nothing but the routes that read one process, and of those only its own. */
export function refuseUnshared(
  { only }: Caller,
  { shared }: { readonly shared?: true },
  { id }: Readonly<Record<string, string>>,
): void {
  if (!only || (shared === true && id !== undefined && only.includes(id))) return;
  throw forbidden('This link shows one process and changes nothing.');
}

function bearerOf(request: GateRequest, policy: GatePolicy): Bearer | undefined {
  const { headers, queryToken, peer, credential } = request;
  if (credential && 'bearer' in credential) return credential.bearer;
  const token = credential ? credential.token : (tokenOf(headers) ?? queryToken);
  return token === undefined ? withoutToken(peer, policy) : policy.bearer(token);
}

function withoutToken(peer: Bearer | undefined, { anyone }: GatePolicy): Bearer {
  if (peer) return peer;
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
