// Tokens: who may call, and as which owner. They are stored only as hashes, each bound to one owner, or to all for an
// admin token. A token is shown once, when it is created. A secret in a file that the user names is an admin token, too.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { errnoOf } from '../../base/disk.ts';
import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { AskedConfinement } from '../../protocol/confinement/confinement.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import { createPrivate, readPrivate, replacePrivate, withLock } from './token-file.ts';

/** What processes of the token's owner may use and touch. */
export interface TokenPolicy extends AskedConfinement {
  /** none: the admin said that the state directory need not be hidden from its processes. */
  readonly level: 'hidden' | 'none';
}

export interface TokenInfo extends Partial<TokenPolicy> {
  readonly id: string;
  readonly owner: Owner;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
}

interface StoredToken extends TokenInfo {
  /** SHA-256 of the token, hex. The token has at least 160 random bits, so a slow hash is not needed. */
  readonly sum: string;
}

/** The caller that a token identifies. */
export interface Bearer {
  readonly tokenId: string;
  /** EVERYONE for an admin token. */
  readonly owner: Owner;
  /** A shared link: it only reads these processes of the owner. */
  readonly only?: readonly string[];
  /** Of a caller at a gateway: what its tokens there allow. */
  readonly ceiling?: TokenPolicy | undefined;
}

const PREFIX = 'hf_';
/** e2b: as E2B's clients and their wrappers check keys. */
export type TokenForm = 'e2b';

/** Of the secret in a file. */
const ADMIN_ID = 'admin';
/** In the home: where earlier versions kept the admin token. */
const OLD_ADMIN_FILE = 'token';

export class Tokens {
  private readonly file: string;
  private readonly clock: Clock;
  private readonly adminHash: Buffer | undefined;
  private stored: readonly StoredToken[] = [];
  /** Why the file in its present state cannot be used. */
  private problem: HoldfastError | undefined;
  private seenAt = '';
  private last: { readonly token: Buffer; readonly sum: Buffer } | undefined;

  /**
   * `serving`: this is the server. The secret in `adminFile` is an admin token; the file is created if there is none. A file
   * that is empty or unreadable is an error, never open access.
   */
  constructor(folder: string, clock: Clock, serving?: { readonly adminFile: string | undefined }) {
    this.clock = clock;
    this.file = join(folder, 'tokens.json');
    if (!serving) return;
    const { adminFile } = serving;
    const old = join(folder, OLD_ADMIN_FILE);
    const kept = adminFile !== old && existsSync(old) ? this.takeOver(old) : undefined;
    this.adminHash = adminFile === undefined ? kept : sumOf(secretIn(adminFile));
  }

  /** Undefined for a token that is unknown, revoked or expired. */
  bearer(token: string): Bearer | undefined {
    const sum = this.hashOfShown(token);
    if (this.adminHash && timingSafeEqual(sum, this.adminHash))
      return { tokenId: ADMIN_ID, owner: EVERYONE };
    const found = this.current().find((stored) =>
      timingSafeEqual(Buffer.from(stored.sum, 'hex'), sum),
    );
    if (!found || this.expired(found)) return undefined;
    return { tokenId: found.id, owner: found.owner };
  }

  /** Without a policy: hidden where that is possible. */
  create(
    owner: Owner,
    lifeMs?: number,
    form?: TokenForm,
    policy?: TokenPolicy,
  ): { token: string; info: TokenInfo } {
    if (owner === EVERYONE || owner === '') {
      throw new HoldfastError('invalid_input', 'A scoped token needs an owner of its own.', {
        field: 'owner',
      });
    }
    return this.add(owner, lifeMs, newToken(form), policy);
  }

  createAdmin(lifeMs?: number, form?: TokenForm): { token: string; info: TokenInfo } {
    return this.add(EVERYONE, lifeMs, newToken(form));
  }

  private add(
    owner: Owner,
    lifeMs: number | undefined,
    token = newToken(),
    policy?: TokenPolicy,
  ): { token: string; info: TokenInfo } {
    const now = this.clock.wallMs();
    const info: TokenInfo = {
      id: randomId().slice(0, 12),
      owner,
      createdAtMs: now,
      ...(lifeMs !== undefined && { expiresAtMs: now + lifeMs }),
      ...policy,
    };
    this.change((tokens) => [
      ...tokens.filter((stored) => !this.expired(stored) || keepsCeilings(stored, owner)),
      { ...info, sum: sumOf(token).toString('hex') },
    ]);
    return { token, info };
  }

  /** The admin token of an earlier version stays valid, as a hash. Returns its hash where it cannot be stored. */
  private takeOver(old: string): Buffer | undefined {
    const text = readPrivate(old);
    // Another program was faster.
    if (text === undefined) return undefined;
    const token = checkedSecret(old, text);
    try {
      if (this.bearer(token)?.owner !== EVERYONE) this.add(EVERYONE, undefined, token);
      rmSync(old, { force: true });
      return undefined;
    } catch (error) {
      if (error instanceof HoldfastError) return sumOf(token);
      throw error;
    }
  }

  list(): TokenInfo[] {
    return this.current().map(({ sum: _sum, ...info }) => info);
  }

  /** It is no longer valid; its owner keeps its ceilings. False if there is no such token, or if it was revoked before. */
  revoke(id: string): boolean {
    let found = false;
    this.change((tokens) => {
      const revoked = tokens.find((stored) => stored.id === id && stored.expiresAtMs !== REVOKED);
      found = revoked !== undefined;
      if (!revoked) return undefined;
      const left = tokens.filter((stored) => stored !== revoked);
      // No token has this sum: programs of earlier versions let none in either.
      const ended = { ...revoked, sum: NO_SUM, expiresAtMs: REVOKED };
      return revoked.owner === EVERYONE ? left : [...left, ended];
    });
    return found;
  }

  /** Lifts the ceilings that an owner has of tokens that have ended. False if there are none. */
  forget(owner: Owner): boolean {
    let found = false;
    this.change((tokens) => {
      const left = tokens.filter((stored) => stored.owner !== owner || !this.expired(stored));
      found = left.length < tokens.length;
      return found ? left : undefined;
    });
    return found;
  }

  /** Whether a token is neither revoked nor expired. A file that cannot be read revokes nothing. */
  isValid(tokenId: string): boolean {
    try {
      return this.current().some((stored) => stored.id === tokenId && !this.expired(stored));
    } catch (error) {
      if (error instanceof HoldfastError) return true;
      throw error;
    }
  }

  /** A client sends the same token with every request, so the last hash is cached. */
  private hashOfShown(token: string): Buffer {
    const shown = Buffer.from(token);
    if (this.last?.token.length === shown.length && timingSafeEqual(this.last.token, shown))
      return this.last.sum;
    this.last = { token: shown, sum: sumOf(token) };
    return this.last.sum;
  }

  private expired({ expiresAtMs }: StoredToken): boolean {
    return expiresAtMs !== undefined && expiresAtMs <= this.clock.wallMs();
  }

  /**
   * Reads the file again whenever it has changed: the command line creates and revokes tokens while the server runs.
   */
  private current(): readonly StoredToken[] {
    const stats = statSync(this.file, { throwIfNoEntry: false });
    const seen = stats ? `${stats.mtimeMs} ${stats.size} ${stats.ino}` : 'none';
    if (seen !== this.seenAt) {
      this.problem = undefined;
      try {
        this.stored = parseTokens(readPrivate(this.file) ?? '[]');
      } catch (error) {
        this.problem = damaged(error);
      }
      this.seenAt = seen;
    }
    if (this.problem) throw this.problem;
    return this.stored;
  }

  /** Takes the lock, so that two programs change the tokens one after the other. */
  private change(
    changed: (tokens: readonly StoredToken[]) => readonly StoredToken[] | undefined,
  ): void {
    withLock(`${this.file}.lock`, () => {
      // A file written in the same millisecond with the same size looks unchanged, so the cache is invalidated.
      this.seenAt = '';
      const tokens = changed(this.current());
      if (tokens) replacePrivate(this.file, `${JSON.stringify(tokens, null, 1)}\n`);
      this.seenAt = '';
    });
  }
}

const SUM = /^[0-9a-f]{64}$/;
/** Long ago, whatever the clock says. */
const REVOKED = 0;
const NO_SUM = '0'.repeat(64);

/** A token that has ended stays for the ceilings of its owner, until that has a new one. */
function keepsCeilings(ended: StoredToken, next: Owner): boolean {
  return ended.owner !== EVERYONE && ended.owner !== next;
}

function parseTokens(text: string): StoredToken[] {
  const tokens: unknown = JSON.parse(text);
  const isToken = (each: Partial<StoredToken> | null): boolean =>
    typeof each?.id === 'string' && typeof each.owner === 'string' && SUM.test(String(each.sum));
  if (Array.isArray(tokens) && tokens.every(isToken)) return tokens as StoredToken[];
  throw new Error('it is no list of tokens');
}

function damaged(error: unknown): HoldfastError {
  // Without the path: callers with an unknown token see this message.
  const reason =
    error instanceof HoldfastError
      ? 'it is not a regular file'
      : (errnoOf(error) ?? 'it is no list of tokens');
  return new HoldfastError(
    'tokens_damaged',
    `The file tokens.json in the state directory cannot be used: ${reason}. The socket in that directory works.`,
  );
}

/** The secret in a file; created if there is no file. An empty or short one is an error. */
export function secretIn(file: string): string {
  const made = readPrivate(file);
  if (made === undefined) createPrivate(file, `${newToken()}\n`);
  return checkedSecret(file, made ?? readPrivate(file) ?? '');
}

function checkedSecret(file: string, text: string): string {
  const secret = text.trim();
  if (secret.length >= 32) return secret;
  throw new HoldfastError(
    'home_unsafe',
    `The file ${file} holds no secret; remove it to have a new one made.`,
  );
}

function newToken(form?: TokenForm): string {
  if (form === 'e2b') return `e2b_${randomBytes(20).toString('hex')}`;
  return PREFIX + randomBytes(32).toString('base64url');
}

export function sumOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
