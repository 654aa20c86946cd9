// What a server needs to serve a fleet in place of one keeper, its native operation about the hosts, and the door of a host for
// the tunnels of gateways.

import type { Duplex } from 'node:stream';
import * as v from 'valibot';
import type { Owner } from '../protocol/host-api.ts';
import type { KeeperLink } from '../keeper/link.ts';
import { shape, text, whole } from './native/event-shapes.ts';
import { query } from './native/query.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { createDoor, type DoorOptions } from './http/door.ts';
import type { Bearer } from './http/tokens.ts';

export interface FleetDoor {
  /** All hosts as one. */
  readonly link: KeeperLink;
  hosts(): readonly FleetHostRow[];
  /** The host that a process of this owner with these labels would be placed on. */
  place(owner: Owner, labels: Readonly<Record<string, string>>): Promise<string>;
  /** A stream to the server of a host, which takes its bytes for HTTP of this caller. */
  tunnel(host: string, caller: Pick<Bearer, 'owner' | 'tokenId'>): Duplex;
}

export const hostStates = ['here', 'silent', 'cut', 'conflict'] as const;
export type HostState = (typeof hostStates)[number];

/** A host as the gateway sees it. */
export interface FleetHostRow {
  readonly name: string;
  readonly state: HostState;
  /** By the wall clock of the gateway. */
  readonly sinceMs: number;
  readonly beat: {
    readonly version: string;
    readonly live: number;
    readonly liveMost: number;
    readonly load: number;
    readonly cpus: number;
    readonly drain: boolean;
    readonly labels: Readonly<Record<string, string>>;
  };
}

type HostRow = Pick<FleetHostRow, 'name' | 'state' | 'sinceMs'> & FleetHostRow['beat'];

const host = v.object({
  name: text,
  state: v.picklist(hostStates),
  sinceMs: whole,
  version: text,
  live: whole,
  liveMost: whole,
  load: v.number(),
  cpus: whole,
  drain: v.boolean(),
  labels: v.record(text, text),
});

export const hostOperations = {
  hosts: {
    method: 'GET',
    path: '/v1/hosts',
    summary: 'List the hosts of a fleet',
    about:
      'For a gateway; the list of any other server is empty. States: here, silent (no word from it), cut (disconnected), conflict (two servers use the name). Admin token only.',
    query: query({}),
    answer: shape<{ readonly hosts: readonly HostRow[] }>(v.object({ hosts: v.array(host) })),
  },
} as const;

export function hostRow({ name, state, sinceMs, beat }: FleetHostRow): HostRow {
  const { version, live, liveMost, load, cpus, drain, labels } = beat;
  return { name, state, sinceMs, version, live, liveMost, load, cpus, drain, labels };
}

/** Listens nowhere: streams are handed to it, each with its caller. */
export interface StreamDoor {
  /** Serves HTTP on a stream whose other end is this caller. */
  readonly serve: (stream: Duplex, bearer: Bearer) => void;
  readonly close: () => void;
}

export function streamDoor(options: Omit<DoorOptions, 'kind'>): StreamDoor {
  const bearers = new WeakMap<Duplex, Bearer>();
  const peer = async (socket: Duplex): Promise<Bearer> => {
    const bearer = bearers.get(socket);
    if (bearer) return bearer;
    throw new HoldfastError('unauthorized', 'The caller of this stream is not known.');
  };
  const door = createDoor({ ...options, policy: { ...options.policy, peer }, kind: 'private' });
  return {
    serve: (stream, bearer) => {
      bearers.set(stream, bearer);
      door.emit('connection', stream);
    },
    close: () => door.closeAllConnections(),
  };
}
