// Reads a file: all of it as base64, all of a small one, or one block.

import type { FileHandle } from 'node:fs/promises';
import { refused } from './error.ts';

/** The limit of codex's server. */
const MAX_READ_BYTES = 512 * 1024 * 1024;
/** As base64 inside an answer, this fits into V8's longest string. */
const MAX_ANSWER_BYTES = 384 * 1024 * 1024;
/** Divisible by three, so that the base64 of the pieces can be concatenated. */
const READ_BYTES = 3 * 1024 * 1024;
const SPARE_BYTES = 4096;

/** As base64. The size is only a hint: a file may grow, and files in /proc report 0. */
export async function readWhole(file: FileHandle): Promise<string> {
  const { size } = await file.stat();
  if (size > MAX_READ_BYTES) throw tooLarge(MAX_READ_BYTES);
  const wanted = Math.min(READ_BYTES, size + SPARE_BYTES);
  const buffer = Buffer.allocUnsafe(wanted - (wanted % 3));
  let [encoded, total] = ['', 0];
  for (;;) {
    const filled = await fill(file, buffer, total);
    total += filled;
    if (total > MAX_ANSWER_BYTES) throw tooLarge(MAX_ANSWER_BYTES);
    encoded += buffer.toString('base64', 0, filled);
    if (filled < buffer.length) return encoded;
  }
}

/** All of a file that should be small. */
export async function readUpTo(file: FileHandle, mostBytes: number): Promise<Buffer | 'too long'> {
  // The size is only a first guess.
  const { size } = await file.stat();
  for (let guess = size + SPARE_BYTES; ; guess *= 4) {
    const buffer = Buffer.allocUnsafe(Math.min(guess, mostBytes + 1));
    const filled = await fill(file, buffer, 0);
    if (filled > mostBytes) return 'too long';
    if (filled < buffer.length) return buffer.subarray(0, filled);
  }
}

/** Less than the buffer only at the end of the file. */
export async function fill(file: FileHandle, buffer: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < buffer.length) {
    const space = buffer.length - filled;
    const { bytesRead } = await file.read(buffer, filled, space, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

function tooLarge(limit: number): Error {
  return refused(`file is too large to read: limit is ${limit} bytes`);
}
