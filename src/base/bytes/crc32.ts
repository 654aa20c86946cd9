// CRC-32 as in zlib. Node's is table-driven; `useFastCrc32` installs a faster one for large inputs.

import { crc32 as zlibCrc32 } from 'node:zlib';

export type Crc32 = (bytes: Uint8Array, value: number) => number;

/** Below this size an FFI call costs more than it saves. */
const LARGE_BYTES = 4096;
let large: Crc32 = zlibCrc32;

/** `value`: the CRC of the bytes before these. */
export function crc32(bytes: Uint8Array, value = 0): number {
  return bytes.length < LARGE_BYTES ? zlibCrc32(bytes, value) : large(bytes, value);
}

/** Installs a faster CRC-32 for large inputs in this thread. Returns false if it disagrees with zlib. */
export function useFastCrc32(fast: Crc32): boolean {
  const sample = Uint8Array.from({ length: LARGE_BYTES + 13 }, (_, at) => at * 31);
  const pieces = [sample, sample.subarray(7), sample.subarray(1, LARGE_BYTES)];
  if (!pieces.every((piece) => fast(piece, 0x1234) === zlibCrc32(piece, 0x1234))) return false;
  large = fast;
  return true;
}
