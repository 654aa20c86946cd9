// What floods are made of, by quicker libraries than Node's own ways: the sums of records, where the system has libdeflate,
// and base64 without a string in between, where this Node lets its own be called.

import { encodeBy } from '../base/base64.ts';
import { sumLargeBy } from '../base/crc32.ts';
import { once } from '../base/once.ts';
import { quickBase64, quickCrc32 } from './posix-library.ts';

/** Once for this program; its other threads go on as before. */
export const useQuickLibraries = once(() => {
  const sum = quickCrc32();
  if (sum) sumLargeBy(sum);
  const encode = quickBase64();
  if (encode) encodeBy(encode);
});
