// What the keys of a fleet may do. Hosts and gateways are users that a scoped signing key vouches for: the template of that
// key is their permission, with their name in it, so one rule holds for all hosts.

import { randomId } from '../../base/ids.ts';
import { CLAIMS, KEPT, LEDGER } from '../ledger/streams.ts';
import type { KeyPair } from './nkeys.ts';

const NAME = '{{name()}}';
const STREAMS = [LEDGER, CLAIMS, KEPT];

/** To read the ledger from its beginning, and to follow it. */
const followsLedger = [
  `$JS.API.STREAM.INFO.${LEDGER}`,
  `$JS.API.CONSUMER.CREATE.${LEDGER}.>`,
  `$JS.API.CONSUMER.MSG.NEXT.${LEDGER}.*`,
  `$JS.API.CONSUMER.DELETE.${LEDGER}.*`,
  `$JS.API.STREAM.MSG.GET.${LEDGER}`,
  `$JS.API.DIRECT.GET.${LEDGER}`,
];

/** A gateway makes the streams where they are missing. It cannot change, purge or delete one. */
const keepsLedger = [
  ...followsLedger,
  ...STREAMS.map((name) => `$JS.API.STREAM.CREATE.${name}`),
  ...[CLAIMS, KEPT].flatMap((name) => [
    `$JS.API.STREAM.INFO.${name}`,
    `$JS.API.STREAM.MSG.GET.${name}`,
  ]),
  'hf.claim.*.*.*',
  'hf.kept.*.*.*',
];
const ANY = -1;

/** Allow-lists: what is not named is refused. Nobody may read the answers to another, or speak for another. */
const templates = {
  host: {
    pub: {
      allow: [
        `hf.up.${NAME}.*`,
        `_hf.r.*.${NAME}.>`,
        // Its own part of the ledger.
        `hf.led.${NAME}`,
        `$JS.API.STREAM.INFO.${LEDGER}`,
        `$JS.API.DIRECT.GET.${LEDGER}.hf.led.${NAME}`,
      ],
    },
    sub: { allow: [`hf.h.${NAME}.*`, 'hf.h._all.roll', `_hf.i.${NAME}.>`] },
    subs: 50,
  },
  gateway: {
    pub: { allow: ['hf.h.>', `hf.up.${NAME}.*`, ...keepsLedger] },
    sub: { allow: ['hf.up.*.*', `_hf.r.${NAME}.>`, `_hf.i.${NAME}.>`] },
    subs: 50,
  },
} as const;

export type Role = keyof typeof templates;

const LARGEST_MESSAGE = 1024 * 1024;

export function operatorClaims(operator: KeyPair, systemAccount: string): string {
  const nats = { type: 'operator', version: 2, system_account: systemAccount };
  return signed(operator, { sub: operator.publicKey, name: 'holdfast', nats });
}

export interface AccountOptions {
  readonly operator: KeyPair;
  readonly account: string;
  readonly name: string;
  /** The public signing keys by role; none for the system account. */
  readonly signers?: Readonly<Record<Role, string>>;
  /** Public keys of users that are no longer let in, with the second of their revocation. */
  readonly revoked?: Readonly<Record<string, number>>;
}

export function accountClaims({ operator, account, name, signers, revoked = {} }: AccountOptions) {
  const unlimited = { subs: ANY, conn: ANY, leaf: ANY, imports: ANY, exports: ANY, data: ANY };
  const stores = { mem_storage: ANY, disk_storage: ANY, streams: ANY, consumer: ANY };
  const limits = { ...unlimited, payload: ANY, wildcards: true, ...(signers && stores) };
  const keys = Object.entries(signers ?? {}).map(([role, key]) => ({
    kind: 'user_scope',
    key,
    role,
    template: { ...templates[role as Role], data: ANY, payload: LARGEST_MESSAGE },
  }));
  const nats = {
    type: 'account',
    version: 2,
    limits,
    default_permissions: { pub: {}, sub: {} },
    ...(keys.length > 0 && { signing_keys: keys }),
    ...(Object.keys(revoked).length > 0 && { revocations: revoked }),
  };
  return signed(operator, { sub: account, name, nats });
}

/** `name`: of the host or gateway; it stands in its permissions. */
export function userClaims(
  signer: KeyPair,
  user: {
    readonly key: string;
    readonly name: string;
    readonly account: string;
    readonly expiresAtMs: number;
  },
): string {
  const { key, name, account, expiresAtMs } = user;
  const nats = { type: 'user', version: 2, issuer_account: account };
  return signed(signer, { sub: key, name, exp: Math.floor(expiresAtMs / 1000), nats });
}

/** For one command of who holds the keys: it writes the last word about a host that never returns. */
export function forgetterClaims(
  account: KeyPair,
  user: { readonly key: string; readonly name: string; readonly expiresAtMs: number },
): string {
  const { key, name, expiresAtMs } = user;
  const nats = {
    type: 'user',
    version: 2,
    pub: { allow: ['hf.led.*', ...followsLedger] },
    sub: { allow: ['hf.up.*.beat', `_hf.i.${name}.>`] },
    subs: 50,
    data: ANY,
    payload: LARGEST_MESSAGE,
  };
  return signed(account, { sub: key, name, exp: Math.floor(expiresAtMs / 1000), nats });
}

/** What a token says, unchecked: NATS checks it. */
export function readClaims(token: string): {
  readonly sub?: string;
  readonly name?: string;
  readonly exp?: number;
} {
  const [, body = ''] = token.split('.');
  return JSON.parse(Buffer.from(body, 'base64url').toString()) as { sub?: string };
}

function signed(issuer: KeyPair, claims: Record<string, unknown>): string {
  const iat = Math.floor(Date.now() / 1000);
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = { jti: randomId(), iat, iss: issuer.publicKey, ...claims };
  const text = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(body)}`;
  return `${text}.${issuer.sign(Buffer.from(text)).toString('base64url')}`;
}
