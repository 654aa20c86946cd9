// Tokens: who may ask, and in whose name. The admin token is one private file; scoped tokens are kept only as sums of
// themselves, each bound to one owner. A token is shown once, when it is made.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { errnoOf } from '../base/disk.ts';
import { randomId } from '../base/ids.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { EVERYONE, type Owner } from '../protocol/host-api.ts';
import { openPrivate } from '../keeper/home.ts';

export interface TokenInfo {
  readonly id: string;
  readonly owner: Owner;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
}

interface StoredToken extends TokenInfo {
  /** SHA-256 of the token, hex: the token has 256 random bits, so nothing slower is needed. */
  readonly sum: string;
}

/** Whom a token speaks for. */
export interface Bearer {
  readonly tokenId: string;
  /** EVERYONE for the admin token. */
  readonly owner: Owner;
}

const PREFIX = 'hf_';

export class Tokens {
  readonly adminFile: string;
  private readonly file: string;
  private readonly clock: Clock;
  private readonly adminSum: Buffer;
  private stored: readonly StoredToken[] = [];
  private seenAt = '';
  private last: { readonly token: Buffer; readonly sum: Buffer } | undefined;

  /** Makes the admin token if there is none. A file that is empty or cannot be read is an error, never an open door. */
  constructor(folder: string, clock: Clock) {
    this.clock = clock;
    this.adminFile = join(folder, 'token');
    this.file = join(folder, 'tokens.json');
    this.adminSum = sumOf(secretIn(this.adminFile));
  }

  /** Undefined for a token that is unknown, revoked or expired. */
  bearer(token: string): Bearer | undefined {
    const sum = this.sumOfShown(token);
    if (timingSafeEqual(sum, this.adminSum)) return { tokenId: 'admin', owner: EVERYONE };
    const found = this.current().find((stored) =>
      timingSafeEqual(Buffer.from(stored.sum, 'hex'), sum),
    );
    if (!found || this.expired(found)) return undefined;
    return { tokenId: found.id, owner: found.owner };
  }

  create(owner: Owner, lifeMs?: number): { token: string; info: TokenInfo } {
    if (owner === EVERYONE || owner === '') {
      throw new HoldfastError('invalid_input', 'A scoped token needs an owner of its own.', {
        field: 'owner',
      });
    }
    const token = newToken();
    const now = this.clock.wallMs();
    const info: TokenInfo = {
      id: randomId().slice(0, 12),
      owner,
      createdAtMs: now,
      ...(lifeMs !== undefined && { expiresAtMs: now + lifeMs }),
    };
    this.write([
      ...this.current().filter((stored) => !this.expired(stored)),
      { ...info, sum: sumOf(token).toString('hex') },
    ]);
    return { token, info };
  }

  list(): TokenInfo[] {
    return this.current().map(({ sum: _sum, ...info }) => info);
  }

  revoke(id: string): boolean {
    const left = this.current().filter((stored) => stored.id !== id);
    if (left.length === this.current().length) return false;
    this.write(left);
    return true;
  }

  /** A caller shows the same token with every request: the last one is not summed up again. */
  private sumOfShown(token: string): Buffer {
    const shown = Buffer.from(token);
    if (this.last?.token.length === shown.length && timingSafeEqual(this.last.token, shown))
      return this.last.sum;
    this.last = { token: shown, sum: sumOf(token) };
    return this.last.sum;
  }

  private expired({ expiresAtMs }: StoredToken): boolean {
    return expiresAtMs !== undefined && expiresAtMs <= this.clock.wallMs();
  }

  /** Read again whenever the file has changed: the command line makes and revokes tokens while the server runs. */
  private current(): readonly StoredToken[] {
    try {
      const { mtimeMs, size, ino } = statSync(this.file);
      const seen = `${mtimeMs} ${size} ${ino}`;
      if (seen !== this.seenAt)
        this.stored = JSON.parse(readFileSync(this.file, 'utf8')) as StoredToken[];
      this.seenAt = seen;
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      this.stored = [];
    }
    return this.stored;
  }

  private write(tokens: readonly StoredToken[]): void {
    writePrivate(this.file, `${JSON.stringify(tokens, null, 1)}\n`);
    this.seenAt = '';
  }
}

/** The secret that a file holds; made if there is no file. One that is empty or too short is an error. */
export function secretIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw error;
    // Of two servers that start at once, one makes it and both use it.
    writePrivate(file, `${newToken()}\n`, linkSync);
    text = readFileSync(file, 'utf8').trim();
  }
  if (text.length >= 32) return text;
  throw new HoldfastError(
    'home_unsafe',
    `The file ${file} holds no secret; remove it to have a new one made.`,
  );
}

function newToken(): string {
  return PREFIX + randomBytes(32).toString('base64url');
}

export function sumOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** Whole or not at all: written beside, then put in its place; by linking, what is there already stays. */
function writePrivate(path: string, text: string, place = renameSync): void {
  const beside = `${path}.${randomId().slice(0, 8)}`;
  const fd = openPrivate(beside, constants.O_WRONLY | constants.O_EXCL);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  try {
    place(beside, path);
  } catch (error) {
    if (place === renameSync || errnoOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(beside, { force: true });
  }
}
