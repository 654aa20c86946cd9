// Who may connect to the drop-in exec-server: a capability token, or a token signed with the shared secret. The rules
// for signed tokens are codex's: HS256, an expiry time, and a minimum length of the secret.

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
  /** Part of the printed URL: only for a token that was created here. */
  readonly token?: string;
  /** The caller without a token, if that was allowed. */
  readonly anyone?: Bearer;
  bearer(token: string): Bearer | undefined;
}

/** Sessions of the drop-in server have an owner of their own: tokens of the other doors cannot reach them. */
const OWNER: Owner = 'exec-server';
const MIN_SECRET_BYTES = 32;
const DEFAULT_SKEW_SECONDS = 30;

export function wsAuth(options: WsAuthOptions, ownTokenFile: string, clock: Clock): WsAuth {
  refuseUnusedFlags(options);
  // Gives no more rights than a token does.
  if (options.kind === 'none')
    return { anyone: { tokenId: 'anyone', owner: OWNER }, bearer: () => undefined };
  if (options.kind === 'signed-bearer-token') return acceptSigned(options, clock);
  if (options.kind === 'own') {
    const token = secretIn(ownTokenFile);
    return { token, ...acceptHash(sumOf(token)) };
  }
  return acceptHash(expectedHash(options));
}

function refuseUnusedFlags({
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

function expectedHash({ tokenFile, tokenSha256 }: WsAuthOptions): Buffer {
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

function acceptHash(total: Buffer): WsAuth {
  return {
    bearer: (token) =>
      timingSafeEqual(sumOf(token), total) ? { tokenId: 'capability', owner: OWNER } : undefined,
  };
}

function acceptSigned(options: WsAuthOptions, clock: Clock): WsAuth {
  const {
    sharedSecretFile,
    issuer,
    audience,
    maxClockSkewSeconds = DEFAULT_SKEW_SECONDS,
  } = options;
  if (sharedSecretFile === undefined)
    throw wrong('--ws-auth signed-bearer-token needs --ws-shared-secret-file');
  const secret = Buffer.from(readFileSync(sharedSecretFile, 'utf8').trim());
  if (secret.length < MIN_SECRET_BYTES)
    throw wrong(`the shared secret must have at least ${MIN_SECRET_BYTES} bytes`);
  return {
    bearer: (token) => {
      const claims = verifyClaims(token, secret);
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
function verifyClaims(token: string, secret: Buffer): Record<string, unknown> | undefined {
  const [head, body, signature, ...more] = token.split('.');
  if (head === undefined || body === undefined || signature === undefined || more.length > 0)
    return undefined;
  if (parsePart(head)?.['alg'] !== 'HS256') return undefined;
  const expected = createHmac('sha256', secret).update(`${head}.${body}`).digest();
  const given = Buffer.from(signature, 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
  return parsePart(body);
}

function parsePart(part: string): Record<string, unknown> | undefined {
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
