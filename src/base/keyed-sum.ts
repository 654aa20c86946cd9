// HMAC-SHA256 of short texts under one key, by two plain sums: Node's own object for it is made anew each time, which in a
// program that was idle takes as long as to write a journal.

import { hash } from 'node:crypto';

const BLOCK_BYTES = 64;
const [INNER, OUTER] = [0x36, 0x5c];

/** The key is at most a block long. The answer gives the sum of a text, in hex. */
export function keyedSum(key: Buffer): (text: string) => string {
  const [inner, outer] = [padded(key, INNER), padded(key, OUTER)];
  return (text) => {
    const sum = hash('sha256', Buffer.concat([inner, Buffer.from(text)]), 'buffer');
    return hash('sha256', Buffer.concat([outer, sum]), 'hex');
  };
}

function padded(key: Buffer, pad: number): Buffer {
  if (key.length > BLOCK_BYTES) throw new Error(`a key of ${key.length} bytes is too long`);
  const block = Buffer.alloc(BLOCK_BYTES, pad);
  for (const [at, byte] of key.entries()) block[at] = byte ^ pad;
  return block;
}
