// A home's membership in a fleet: the file fleet.json, and the joiner that runs while it is there. A change of the file
// changes what a running server does: a server joins, drains and leaves without a restart.

import { readFileSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Clock } from '../../base/clock.ts';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { authenticatorOf } from '../identity/credentials.ts';
import { checkServers, refuseOldServer, tlsFor } from '../wire/addresses.ts';
import { Joiner } from './joiner.ts';
import type { ServeStream } from './served-tunnels.ts';
import { checkLabels } from '../wire/messages.ts';
import { checkName } from '../wire/subjects.ts';
import { MEMBERSHIP as FILE } from '../../system/private-folder.ts';

const membership = v.object({
  v: v.literal(1),
  name: v.string(),
  servers: v.pipe(v.array(v.string()), v.minLength(1)),
  labels: v.record(v.string(), v.string()),
  /** Globs of the owners that gateways may act for; absent: all. */
  owners: v.optional(v.array(v.string())),
  /** A file with the certificate of the authority that NATS's certificate comes from; absent: the machine's own. */
  ca: v.optional(v.string()),
  drain: v.boolean(),
});

export type Membership = v.InferOutput<typeof membership>;

/** Undefined if the home belongs to no fleet. */
export function readMembership(home: string): Membership | undefined {
  const path = join(home, FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return v.parse(membership, JSON.parse(text));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new HoldfastError('invalid_input', `${path} is not a membership: ${why}.`, {
      remedy: 'Remove the file and join again.',
    });
  }
}

/** Replaces the file as a whole: a reader finds the old one or the new one. */
export function writeMembership(home: string, member: Membership): void {
  const path = join(home, FILE);
  writeFileSync(`${path}.new`, `${JSON.stringify(member, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function removeMembership(home: string): boolean {
  const path = join(home, FILE);
  const was = readMembership(home) !== undefined;
  rmSync(path, { force: true });
  return was;
}

export function newMembership(
  home: string,
  given: Pick<Membership, 'name' | 'servers' | 'labels' | 'owners' | 'ca'>,
): Membership {
  checkName('host', given.name);
  checkLabels(given.labels);
  checkServers(given.servers, authenticatorOf(home) !== undefined);
  return { v: 1, drain: false, ...given };
}

export interface MemberOptions {
  readonly home: string;
  readonly host: HostApi;
  readonly clock: Clock;
  readonly report: (message: string) => void;
  /** Serves what gateways tunnel to this host. */
  readonly serve?: ServeStream | undefined;
}

/** Follows the file. Returns a function that leaves the fleet and stops following. */
export function followMembership(options: MemberOptions): () => Promise<void> {
  const { home, report } = options;
  let current: { member: Membership; joiner: Joiner } | undefined;
  let changing: Promise<void> = Promise.resolve();
  const change = async (): Promise<void> => {
    try {
      current = await apply(readMembership(home), current, options);
    } catch (error) {
      report(error instanceof Error ? error.message : String(error));
    }
  };
  const look = (): void => void (changing = changing.then(change));
  const watcher = watch(home, (_event, name) => {
    if (name === FILE) look();
  });
  watcher.on('error', (error) => report(`${FILE} is no longer followed: ${error.message}`));
  watcher.unref();
  look();
  return async () => {
    watcher.close();
    await changing;
    await current?.joiner.close();
  };
}

async function apply(
  member: Membership | undefined,
  current: { member: Membership; joiner: Joiner } | undefined,
  { home, host, clock, report, serve }: MemberOptions,
): Promise<{ member: Membership; joiner: Joiner } | undefined> {
  const { drain: _before, ...was } = current?.member ?? { drain: false };
  const { drain = false, ...is } = member ?? {};
  if (current && member && JSON.stringify(was) === JSON.stringify(is)) {
    current.joiner.drain(drain);
    return { member, joiner: current.joiner };
  }
  await current?.joiner.close({ leaves: !member });
  if (!member) return undefined;
  const { name, servers, labels, owners, ca } = member;
  const joiner = new Joiner({
    host,
    clock,
    report,
    name,
    servers,
    labels,
    owners,
    drain,
    serve,
    home,
    authenticator: authenticatorOf(home),
    tls: tlsFor(servers, ca),
    refuse: refuseOldServer,
  });
  return { member, joiner };
}
