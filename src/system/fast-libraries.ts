// What floods are made of, by quicker libraries than Node's own ways: the sums of records, where the system has libdeflate,
// and base64 without a string in between, where this Node lets its own be called.

import { encodeBy } from '../base/bytes/base64.ts';
import { useFastCrc32 } from '../base/bytes/crc32.ts';
import { once } from '../base/once.ts';
import { quickBase64, fastCrc32 } from './posix-library.ts';

/** Once for this program; its other threads go on as before. */
export const useFastLibraries = once(() => {
  const sum = fastCrc32();
  if (sum) useFastCrc32(sum);
  const encode = quickBase64();
  if (encode) encodeBy(encode);
});
