// Keys of NATS: ed25519 in base32 with a letter in front that says what they are for. Signed by node:crypto, which takes a
// millisecond where the pure JavaScript of the NATS client takes 60.

import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto';
import { HoldfastError } from '../../protocol/errors.ts';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const SEED = 18 << 3;
const kinds = { operator: 14 << 3, account: 0, user: 20 << 3 } as const;
const KEY_BYTES = 32;
/** The fixed beginning of a PKCS #8 document of an ed25519 key. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

export type KeyKind = keyof typeof kinds;

export interface KeyPair {
  /** "U…", "A…" or "O…": for everyone. */
  readonly publicKey: string;
  /** "S…": for nobody else. */
  readonly seed: string;
  readonly sign: (data: Uint8Array) => Buffer;
}

export function newKey(kind: KeyKind): KeyPair {
  const { privateKey } = generateKeyPairSync('ed25519');
  const raw = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(PKCS8.length);
  return pairOf(kind, raw, privateKey);
}

/** Throws for a text that is no seed. */
export function keyFromSeed(text: string): KeyPair {
  const bytes = decode(text.trim());
  const [first = 0, second = 0] = bytes;
  const role = ((first & 7) << 5) | (second >> 3);
  const kind = (Object.keys(kinds) as KeyKind[]).find((name) => kinds[name] === role);
  if ((first & 0xf8) !== SEED || kind === undefined || bytes.length !== KEY_BYTES + 2)
    throw new HoldfastError('invalid_input', 'This is not the seed of a NATS key.');
  const raw = bytes.subarray(2);
  const der = Buffer.concat([PKCS8, raw]);
  return pairOf(kind, raw, createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
}

/** A public key of this kind, checked. */
export function checkPublicKey(kind: KeyKind, text: string): string {
  const bytes = decode(text);
  if (bytes[0] === kinds[kind] && bytes.length === KEY_BYTES + 1) return text;
  throw new HoldfastError(
    'invalid_input',
    `"${text.slice(0, 80)}" is not a public key of a ${kind}.`,
  );
}

function pairOf(kind: KeyKind, raw: Uint8Array, key: KeyObject): KeyPair {
  const role = kinds[kind];
  const der = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return {
    publicKey: encode(Buffer.from([role]), der.subarray(der.length - KEY_BYTES)),
    seed: encode(Buffer.from([SEED | (role >> 5), (role & 31) << 3]), raw),
    sign: (data) => sign(null, data, key),
  };
}

function encode(prefix: Uint8Array, payload: Uint8Array): string {
  const body = Buffer.concat([prefix, payload]);
  const check = Buffer.alloc(2);
  check.writeUInt16LE(crc16(body));
  let [bits, value, text] = [0, 0, ''];
  for (const byte of Buffer.concat([body, check])) {
    value = (value << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += LETTERS[(value >> (bits - 5)) & 31];
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? text + LETTERS[(value << (5 - bits)) & 31] : text;
}

/** Without the checksum; empty for a text that is no key. */
function decode(text: string): Buffer {
  const bytes: number[] = [];
  let [bits, value] = [0, 0];
  for (const letter of text) {
    const digit = LETTERS.indexOf(letter);
    if (digit < 0 || bytes.length > 64) return Buffer.alloc(0);
    value = ((value << 5) | digit) & 0xffff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  const all = Buffer.from(bytes);
  if (all.length < 3) return Buffer.alloc(0);
  const body = all.subarray(0, -2);
  return all.readUInt16LE(body.length) === crc16(body) ? body : Buffer.alloc(0);
}

/** CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1)
      crc = (crc & 0x8000) === 0 ? (crc << 1) & 0xffff : ((crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc;
}
