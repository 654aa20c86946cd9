// Who may connect to the drop-in exec-server: a capability token, or a token that somebody with the shared secret signed.
// The rules of the signed one are those of the peer: HS256, a time at which it ends, and a secret that is long enough.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import { sumOf, secretIn, type Bearer } from '../http/tokens.ts';

export interface WsAuthOptions {
  readonly kind: 'own' | 'none' | 'capability-token' | 'signed-bearer-token';
  readonly tokenFile?: string | undefined;
  readonly tokenSha256?: string | undefined;
  readonly sharedSecretFile?: string | undefined;
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
  readonly maxClockSkewSeconds?: number | undefined;
}

export interface WsAuth {
  /** Part of the address that is printed: only of a token that was made here. */
  readonly token?: string;
  /** Who comes without a token, where that was chosen. */
  readonly anyone?: Bearer;
  bearer(token: string): Bearer | undefined;
}

/** Sessions of the drop-in server belong to it: a token of the other doors does not reach them. */
const OWNER: Owner = 'exec-server';
const LEAST_SECRET_BYTES = 32;
const DEFAULT_SKEW_SECONDS = 30;

export function wsAuth(options: WsAuthOptions, ownTokenFile: string, clock: Clock): WsAuth {
  refuseStray(options);
  // No more than a token gives.
  if (options.kind === 'none')
    return { anyone: { tokenId: 'anyone', owner: OWNER }, bearer: () => undefined };
  if (options.kind === 'signed-bearer-token') return signed(options, clock);
  if (options.kind === 'own') {
    const token = secretIn(ownTokenFile);
    return { token, ...capability(sumOf(token)) };
  }
  return capability(givenHash(options));
}

function refuseStray({
  kind,
  tokenFile,
  tokenSha256,
  sharedSecretFile,
  ...rest
}: WsAuthOptions): void {
  const { issuer, audience, maxClockSkewSeconds } = rest;
  const capabilityFlags = tokenFile ?? tokenSha256;
  const signedFlags = sharedSecretFile ?? issuer ?? audience ?? maxClockSkewSeconds;
  if (capabilityFlags !== undefined && kind !== 'capability-token')
    throw wrong('--ws-token-file and --ws-token-sha256 go with --ws-auth capability-token');
  if (signedFlags !== undefined && kind !== 'signed-bearer-token')
    throw wrong('the flags of a signed token go with --ws-auth signed-bearer-token');
}

function givenHash({ tokenFile, tokenSha256 }: WsAuthOptions): Buffer {
  if ((tokenFile === undefined) === (tokenSha256 === undefined))
    throw wrong('--ws-auth capability-token needs --ws-token-file or --ws-token-sha256');
  if (tokenSha256 !== undefined) {
    if (!/^[0-9a-f]{64}$/i.test(tokenSha256)) throw wrong('--ws-token-sha256 takes 64 hex digits');
    return Buffer.from(tokenSha256, 'hex');
  }
  const token = readFileSync(tokenFile ?? '', 'utf8').trim();
  if (token === '') throw wrong(`the file ${tokenFile} holds no token`);
  return sumOf(token);
}

function capability(sum: Buffer): WsAuth {
  return {
    bearer: (token) =>
      timingSafeEqual(sumOf(token), sum) ? { tokenId: 'capability', owner: OWNER } : undefined,
  };
}

function signed(options: WsAuthOptions, clock: Clock): WsAuth {
  const {
    sharedSecretFile,
    issuer,
    audience,
    maxClockSkewSeconds = DEFAULT_SKEW_SECONDS,
  } = options;
  if (sharedSecretFile === undefined)
    throw wrong('--ws-auth signed-bearer-token needs --ws-shared-secret-file');
  const secret = Buffer.from(readFileSync(sharedSecretFile, 'utf8').trim());
  if (secret.length < LEAST_SECRET_BYTES)
    throw wrong(`the shared secret must have at least ${LEAST_SECRET_BYTES} bytes`);
  return {
    bearer: (token) => {
      const claims = verified(token, secret);
      if (!claims) return undefined;
      const now = clock.wallMs() / 1000;
      const { exp, nbf, iss, aud } = claims;
      if (typeof exp !== 'number' || exp + maxClockSkewSeconds <= now) return undefined;
      if (nbf !== undefined && !(typeof nbf === 'number' && nbf - maxClockSkewSeconds <= now))
        return undefined;
      if (issuer !== undefined && iss !== issuer) return undefined;
      const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
      if (audience !== undefined && !audiences.includes(audience)) return undefined;
      return { tokenId: 'signed', owner: OWNER };
    },
  };
}

/** The claims of a token that was signed with the secret. */
function verified(token: string, secret: Buffer): Record<string, unknown> | undefined {
  const [head, body, signature, ...more] = token.split('.');
  if (head === undefined || body === undefined || signature === undefined || more.length > 0)
    return undefined;
  if (parsed(head)?.['alg'] !== 'HS256') return undefined;
  const expected = createHmac('sha256', secret).update(`${head}.${body}`).digest();
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return parsed(body);
}

function parsed(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function wrong(problem: string): HoldfastError {
  return new HoldfastError('invalid_input', `exec-server: ${problem}.`);
}
