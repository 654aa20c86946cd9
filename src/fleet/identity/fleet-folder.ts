// The folder of a fleet's keys. Its holder decides who belongs to the fleet: keep it offline. NATS needs only the
// configuration that is made from it.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Authenticator } from '@nats-io/transport-node';
import * as v from 'valibot';
import { HoldfastError } from '../../protocol/errors.ts';
import { checkName } from '../wire/subjects.ts';
import { accountClaims, forgetterClaims, operatorClaims, userClaims, type Role } from './claims.ts';
import { checkPublicKey, keyFromSeed, newKey } from './nkeys.ts';

const STATE = 'fleet-keys.json';
export const CONFIG = 'nats.conf';
const DAY_MS = 24 * 60 * 60 * 1000;
/** An admission that was stolen with its seed is of use for this long, if nobody notices. */
const ADMITTED_MS = 365 * DAY_MS;
const FORGETTER_MS = 10 * 60 * 1000;

const state = v.object({
  v: v.literal(1),
  listen: v.string(),
  tls: v.optional(v.object({ cert: v.string(), key: v.string() })),
  /** Where NATS stores the ledger of the fleet; absent: it has none. */
  store: v.optional(v.string()),
  operator: v.string(),
  /** Signed once: NATS reads no configuration again in which the operator has changed. */
  operatorClaims: v.string(),
  systemAccount: v.string(),
  systemClaims: v.string(),
  account: v.string(),
  signers: v.object({ host: v.string(), gateway: v.string() }),
  members: v.record(
    v.string(),
    v.object({ role: v.picklist(['host', 'gateway']), key: v.string(), atMs: v.number() }),
  ),
  /** Public keys, with the second of their revocation. */
  revoked: v.record(v.string(), v.number()),
});

type State = v.InferOutput<typeof state>;

export interface InitOptions {
  readonly listen: string;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** A folder on the machine of NATS. */
  readonly store?: string | undefined;
}

/** Makes the keys of a new fleet, and the configuration of its NATS servers. */
export function initFleet(folder: string, { listen, tls, store }: InitOptions): void {
  if (existsSync(join(folder, STATE)))
    throw new HoldfastError('invalid_input', `${folder} has the keys of a fleet already.`, {
      remedy: 'Choose another folder.',
    });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const operator = newKey('operator');
  const system = newKey('account');
  write(folder, {
    v: 1,
    listen,
    ...(tls && { tls }),
    ...(store !== undefined && { store }),
    operator: operator.seed,
    operatorClaims: operatorClaims(operator, system.publicKey),
    systemAccount: system.seed,
    systemClaims: accountClaims({ operator, account: system.publicKey, name: 'SYS' }),
    account: newKey('account').seed,
    signers: { host: newKey('account').seed, gateway: newKey('account').seed },
    members: {},
    revoked: {},
  });
}

/** Signs the public key of a host or gateway. The result is no secret: it is of use only with the seed of that key. */
export function admit(
  folder: string,
  member: { readonly role: Role; readonly name: string; readonly key: string },
  now: number = Date.now(),
): string {
  const { role, name, key } = member;
  checkName(role, name);
  checkPublicKey('user', key);
  const fleet = read(folder);
  const other = fleet.members[name];
  if (other && (other.key !== key || other.role !== role)) {
    const problem = `The name "${name}" belongs to another ${other.role}.`;
    throw new HoldfastError('id_taken', problem, {
      remedy: `Forget that one first: holdfast fleet forget ${name}.`,
    });
  }
  if (fleet.revoked[key] !== undefined)
    throw new HoldfastError('forbidden', 'This key has been revoked.', {
      remedy: 'Remove fleet.key from the home of the host and admit its new key.',
    });
  write(folder, { ...fleet, members: { ...fleet.members, [name]: { role, key, atMs: now } } });
  return userClaims(keyFromSeed(fleet.signers[role]), {
    key,
    name,
    account: keyFromSeed(fleet.account).publicKey,
    expiresAtMs: now + ADMITTED_MS,
  });
}

/** Revokes the key of a member. NATS closes its connection when it reads its configuration again. */
export function forget(folder: string, name: string, now: number = Date.now()): void {
  const fleet = read(folder);
  const { [name]: member, ...members } = fleet.members;
  if (!member) throw new HoldfastError('not_found', `No member of the fleet is named "${name}".`);
  const revoked = { ...fleet.revoked, [member.key]: Math.floor(now / 1000) };
  write(folder, { ...fleet, members, revoked });
}

/** Whether the folder has the keys of a fleet, and this name is one of its members. */
export function isMember(folder: string, name: string): boolean {
  return existsSync(join(folder, STATE)) && read(folder).members[name] !== undefined;
}

/** Credentials of a few minutes, to write the last word about a host that never returns. Undefined: there are no keys. */
export function forgetter(
  folder: string,
  name: string,
  now: number = Date.now(),
): Authenticator | undefined {
  if (!existsSync(join(folder, STATE))) return undefined;
  const user = newKey('user');
  const account = keyFromSeed(read(folder).account);
  const expiresAtMs = now + FORGETTER_MS;
  const jwt = forgetterClaims(account, { key: user.publicKey, name, expiresAtMs });
  return (nonce) => {
    const sig = user.sign(Buffer.from(nonce ?? '')).toString('base64url');
    return { jwt, nkey: user.publicKey, sig };
  };
}

function read(folder: string): State {
  const path = join(folder, STATE);
  if (!existsSync(path))
    throw new HoldfastError('not_found', `${folder} has no keys of a fleet.`, {
      remedy: 'Make them with "holdfast fleet init".',
    });
  return v.parse(state, JSON.parse(readFileSync(path, 'utf8')));
}

function write(folder: string, fleet: State): void {
  replace(join(folder, STATE), `${JSON.stringify(fleet, undefined, 2)}\n`);
  replace(join(folder, CONFIG), configOf(fleet));
}

function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Servers that are new enough to be used beyond this machine can write each message to the disk before they answer. */
function jetStreamOf(store: string, isNew: boolean): string {
  return `jetstream { store_dir: ${JSON.stringify(store)}${isNew ? ', sync_interval: always' : ''} }`;
}

function configOf(fleet: State): string {
  const { listen, tls, store, signers, revoked } = fleet;
  const system = keyFromSeed(fleet.systemAccount).publicKey;
  const account = keyFromSeed(fleet.account).publicKey;
  const claims = accountClaims({
    operator: keyFromSeed(fleet.operator),
    account,
    name: 'fleet',
    signers: {
      host: keyFromSeed(signers.host).publicKey,
      gateway: keyFromSeed(signers.gateway).publicKey,
    },
    revoked,
  });
  return [
    '# Made by "holdfast fleet". Run it with: nats-server -c nats.conf',
    `listen: "${listen}"`,
    'max_payload: 1MB',
    'max_pending: 64MB',
    'write_deadline: "10s"',
    'ping_interval: "5s"',
    'ping_max: 2',
    ...(tls ? [`tls { cert_file: "${tls.cert}", key_file: "${tls.key}", timeout: 2 }`] : []),
    ...(store === undefined ? [] : [jetStreamOf(store, tls !== undefined)]),
    `operator: ${fleet.operatorClaims}`,
    `system_account: ${system}`,
    'resolver: MEMORY',
    'resolver_preload: {',
    `  ${system}: ${fleet.systemClaims}`,
    `  ${account}: ${claims}`,
    '}',
    '',
  ].join('\n');
}
