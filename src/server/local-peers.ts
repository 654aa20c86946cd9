// Callers on the socket in the home, who show no token: who they are is seen by the process at the other end. One that came
// from a process of the keeper is never the admin, but speaks for the owner of that process.

import type { Socket } from 'node:net';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type CallerOrigin } from '../protocol/host-api.ts';
import { lineUpTo } from '../host/descendants/origin.ts';
import type { KeeperLink } from '../keeper/link.ts';
import { ofNobody, scopeOf, type Scope } from '../keeper/scope.ts';
import { loadPosix } from '../system/posix.ts';
import { PosixError } from '../system/posix-library.ts';
import { isShortage } from '../system/proc-table.ts';
import type { Bearer } from './http/tokens.ts';

const INSIDE = 'inside:';

/** Whether a caller was let in because of the process it came from. */
export function isInside(tokenId: string): boolean {
  return tokenId.startsWith(INSIDE);
}

/** Each connection is looked at once. A refusal is not remembered: the keeper may be back with the next request. */
export function localPeers(link: () => Promise<KeeperLink>): (socket: Socket) => Promise<Bearer> {
  const known = new WeakMap<Socket, Promise<Bearer>>();
  return (socket) => {
    const bearer = known.get(socket) ?? bearerOf(socket, link);
    known.set(socket, bearer);
    bearer.catch(() => known.delete(socket));
    return bearer;
  };
}

async function bearerOf(socket: Socket, link: () => Promise<KeeperLink>): Promise<Bearer> {
  const scope = await callerScope(socket, link);
  if (scope === 'all') return { tokenId: 'private', owner: EVERYONE };
  if (scope?.owner !== undefined) return { tokenId: `${INSIDE}${scope.owner}`, owner: scope.owner };
  if (scope) throw ofNobody(scope);
  const problem = 'The program that opened this connection has ended: nobody knows who asks.';
  throw new HoldfastError('from_inside', problem);
}

async function callerScope(
  socket: Socket,
  link: () => Promise<KeeperLink>,
): Promise<Scope | undefined> {
  const posix = loadPosix();
  if (!posix) throw new HoldfastError('unsupported', 'System calls cannot be made here.');
  try {
    return await scopeOf(posix, socket, async (pid) => originOf(await link(), pid));
  } catch (error) {
    if (!isShortage(error) && !(error instanceof PosixError)) throw error;
    const problem = 'No file descriptor is free to look who asks.';
    throw new HoldfastError('too_many_files', problem);
  }
}

async function originOf({ keeper, origin }: KeeperLink, pid: number): Promise<CallerOrigin> {
  if (origin) return origin(pid);
  // An older keeper knows no owners of programs: they are refused.
  const line = lineUpTo(keeper.pid, pid);
  return { inside: line === undefined || line.arrives };
}

/** A server inside a process would speak for one owner only, and stand in the place of the server that speaks for all. */
export function insideServer({ owner }: CallerOrigin): HoldfastError {
  const whose = owner === undefined ? '' : ` for the owner "${owner}"`;
  const problem = `A server cannot run inside a process that Holdfast started${whose}: it has to speak for every owner.`;
  return new HoldfastError('from_inside', problem, { ...(owner !== undefined && { owner }) });
}
