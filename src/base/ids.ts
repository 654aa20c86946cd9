// Unguessable ids that need no quoting in a shell: 130 random bits in lower-case letters and digits.

import { randomFillSync } from 'node:crypto';

// 32 letters, so that a byte's low five bits pick one without bias; no l, o, u, v to misread or spell with.
const LETTERS = '0123456789abcdefghijkmnpqrstwxyz';

const ID_BYTES = 26;
/** Random bytes for 64 ids: one call costs the same for few bytes as for many. Each byte is used once. */
const pool = Buffer.alloc(ID_BYTES * 64);
let used = pool.length;

/** 26 letters of 5 bits: 130 random bits. */
export function randomId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += ID_BYTES;
  return idLetters(pool.subarray(used - ID_BYTES, used));
}

/** A letter for each byte. */
export function idLetters(bytes: Uint8Array): string {
  let letters = '';
  for (const byte of bytes) letters += LETTERS[byte & 31];
  return letters;
}

/** Ids that a caller may choose. An id becomes part of a file name. */
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
