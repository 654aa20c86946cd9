// Names that nobody can guess and nobody has to quote: 128 random bits in lower-case letters and digits.

import { randomFillSync } from 'node:crypto';

// 32 letters, so that a byte's low five bits pick one without bias; no l, o, u, v to misread or spell with.
const LETTERS = '0123456789abcdefghijkmnpqrstwxyz';

const ID_BYTES = 26;
/** Drawn for many ids at once, because every drawing costs the same; each byte is used once. */
const drawn = Buffer.alloc(ID_BYTES * 64);
let used = drawn.length;

/** 26 letters of 5 bits: 130 random bits. */
export function randomId(): string {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  let id = '';
  for (const end = used + ID_BYTES; used < end; used += 1) id += LETTERS[(drawn[used] ?? 0) & 31];
  return id;
}

/** What a caller may choose as an id: it becomes part of a file name. */
export const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
