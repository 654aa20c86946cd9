// In whose name a connection may ask. A program that this keeper started, or that came from one, is never the admin: it
// speaks for the owner of the process it came from, or for nobody.

import type { Socket } from 'node:net';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type CallerOrigin, type Owner } from '../protocol/host-api.ts';
import { holdPeer } from '../system/peer.ts';
import type { Posix } from '../system/posix.ts';

/** "all": the person whose machine it is, who names the owner with every request. */
export type Scope = 'all' | CallerOrigin;

/**
 * Looks who is at the other end, and holds it meanwhile, so that its number is nobody else's. Undefined when it has ended:
 * then nobody can say who shares the connection with it.
 */
export async function scopeOf(
  posix: Posix,
  socket: Socket,
  originOf: (pid: number) => Promise<CallerOrigin>,
): Promise<Scope | undefined> {
  const peer = holdPeer(posix, socket);
  if (peer === 'outside') return 'all';
  if (peer === 'gone') return undefined;
  try {
    const origin = await originOf(peer.pid);
    if (peer.hasEnded()) return undefined;
    return origin.inside ? origin : 'all';
  } finally {
    peer.release();
  }
}

/** The owner in whose name a request is answered. Sub-owners ("chat:1/codex:2") are the owner's own. */
export function ownerWithin(scope: Scope, asked: Owner): Owner {
  if (scope === 'all') return asked;
  const { owner } = scope;
  if (owner === undefined) throw ofNobody(scope);
  if (asked === EVERYONE) return owner;
  if (asked === owner || asked.startsWith(`${owner}/`)) return asked;
  throw new HoldfastError(
    'from_inside',
    `This program was started by Holdfast for the owner "${owner}" and cannot act for "${asked}".`,
    { owner },
  );
}

export function onlyFromOutside(scope: Scope, what: string): void {
  if (scope === 'all') return;
  const { owner } = scope;
  if (owner === undefined) throw ofNobody(scope);
  const problem = `This program was started by Holdfast for the owner "${owner}" and cannot ${what}: that concerns every owner.`;
  throw new HoldfastError('from_inside', problem, { owner });
}

/** Of a program that acts for no owner here. */
export function ofNobody({ confinedBy }: CallerOrigin): HoldfastError {
  const details = confinedBy && { confinedBy, remedy: REMEDY };
  return new HoldfastError('from_inside', NOBODY[confinedBy ?? 'nothing'], details);
}

const NOBODY = {
  nothing:
    'This program came from a process that Holdfast started, but left its session and environment and lost its parents: nobody knows which process it was.',
  keeper:
    'This program is in a sandbox of the keeper of another state directory, so nobody knows here what it may do.',
  namespace:
    'This program is in a pid namespace of its own, as of a container or a sandbox, so nobody knows here what it may do.',
};
const REMEDY =
  'Do this from a program outside, or call the server by HTTP with a token ("holdfast token create").';
