// Looks at all files of a folder in which programs are at work.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../src/base/disk.ts';

/** What `look` finds of everything below a folder. What has gone since it was listed is left out. */
export function lookBelow<T>(folder: string, look: (path: string) => T): T[] {
  return readdirSync(folder, { recursive: true }).flatMap((name) => {
    try {
      return [look(join(folder, String(name)))];
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      return [];
    }
  });
}
