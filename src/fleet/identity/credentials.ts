// The credentials of one host or gateway: its seed, which never leaves its home, and the admission that the fleet signed.
// Both are read anew for each connection, so a renewed admission needs no restart.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Authenticator } from '@nats-io/transport-node';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { readClaims } from './claims.ts';
import { keyFromSeed, newKey } from './nkeys.ts';

const SEED_FILE = 'fleet.key';
const ADMISSION_FILE = 'fleet.admission';

/** The public key of this home; made on the first call. */
export function ownPublicKey(home: string): string {
  const path = join(home, SEED_FILE);
  const text = read(path);
  if (text !== undefined) return keyFromSeed(text).publicKey;
  const key = newKey('user');
  writeFileSync(path, `${key.seed}\n`, { mode: 0o600, flag: 'wx' });
  return key.publicKey;
}

/** Refuses one that was made for another key. Returns the name that it was made for. */
export function storeAdmission(home: string, admission: string): string {
  const token = admission.trim();
  const { sub, name } = claimsOf(token);
  if (sub !== ownPublicKey(home) || name === undefined) {
    const problem = `The admission is not for the key of ${home}.`;
    throw new HoldfastError('invalid_input', problem, {
      remedy: 'Make one for the key that "holdfast fleet key" prints.',
    });
  }
  writeFileSync(join(home, ADMISSION_FILE), `${token}\n`, { mode: 0o600 });
  return name;
}

/** Undefined for a home that has not been admitted. */
export function authenticatorOf(home: string): Authenticator | undefined {
  if (read(join(home, ADMISSION_FILE)) === undefined) return undefined;
  return (nonce) => {
    const key = keyFromSeed(read(join(home, SEED_FILE)) ?? '');
    const jwt = (read(join(home, ADMISSION_FILE)) ?? '').trim();
    const sig = key.sign(Buffer.from(nonce ?? '')).toString('base64url');
    return { jwt, nkey: key.publicKey, sig };
  };
}

function claimsOf(token: string): ReturnType<typeof readClaims> {
  try {
    return readClaims(token);
  } catch {
    throw new HoldfastError('invalid_input', 'This is not an admission to a fleet.');
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
