// Installs native CRC-32 (libdeflate) and base64 (simdutf) where they are available.

import { useFastBase64 } from '../base/bytes/base64.ts';
import { useFastCrc32 } from '../base/bytes/crc32.ts';
import { fastBase64, fastCrc32 } from './posix-library.ts';

let installed: readonly string[] | undefined;

/** Once, for the calling thread only. Returns the names of what it installed. */
export function useFastLibraries(): readonly string[] {
  installed ??= install();
  return installed;
}

function install(): string[] {
  const checksum = fastCrc32();
  const encode = fastBase64();
  return [
    ...(checksum && useFastCrc32(checksum) ? ['CRC-32 by libdeflate'] : []),
    ...(encode && useFastBase64(encode) ? ['base64 by simdutf'] : []),
  ];
}
