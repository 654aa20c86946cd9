// Installs native CRC-32 (libdeflate) and base64 (simdutf) where they are available.

import { useFastBase64 } from '../base/bytes/base64.ts';
import { useFastCrc32 } from '../base/bytes/crc32.ts';
import { once } from '../base/once.ts';
import { fastBase64, fastCrc32 } from './posix-library.ts';

/** For the calling thread only. */
export const useFastLibraries = once(() => {
  const checksum = fastCrc32();
  if (checksum) useFastCrc32(checksum);
  const encode = fastBase64();
  if (encode) useFastBase64(encode);
});
