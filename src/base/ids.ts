// Names that nobody can guess and nobody has to quote: 128 random bits in lower-case letters and digits.

import { randomBytes } from 'node:crypto';

// 32 letters, so that a byte's low five bits pick one without bias; no l, o, u, v to misread or spell with.
const LETTERS = '0123456789abcdefghijkmnpqrstwxyz';

/** 26 letters of 5 bits: 130 random bits. */
export function randomId(): string {
  let id = '';
  for (const byte of randomBytes(26)) id += LETTERS[byte & 31];
  return id;
}

/** What a caller may choose as an id: it becomes part of a file name. */
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
