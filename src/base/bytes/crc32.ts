// CRC-32, as zlib has it. Node's goes by a table; where something quicker can be had, whoever has it gives it here.

import { crc32 as byTable } from 'node:zlib';

export type Crc32 = (bytes: Uint8Array, value: number) => number;

/** Below this size a foreign call costs more than it saves. */
const LARGE_BYTES = 4096;
let large: Crc32 = byTable;

/** Of bytes that follow others whose sum is `value`. */
export function crc32(bytes: Uint8Array, value = 0): number {
  return bytes.length < LARGE_BYTES ? byTable(bytes, value) : large(bytes, value);
}

/** Installs a faster CRC-32 for large inputs in this thread. Returns false if it disagrees with zlib. */
export function useFastCrc32(quick: Crc32): boolean {
  const sample = Uint8Array.from({ length: LARGE_BYTES + 13 }, (_, at) => at * 31);
  const pieces = [sample, sample.subarray(7), sample.subarray(1, LARGE_BYTES)];
  if (!pieces.every((piece) => quick(piece, 0x1234) === byTable(piece, 0x1234))) return false;
  large = quick;
  return true;
}
