// The version of this program, from package.json.

import { readFileSync } from 'node:fs';
import { errnoOf } from './disk.ts';

export const VERSION: string = readVersion(new URL('.', import.meta.url));

/** Searches upwards from `folder`, because bundled workers lie at another depth than this file. */
function readVersion(folder: URL): string {
  try {
    const text = readFileSync(new URL('package.json', folder), 'utf8');
    return String((JSON.parse(text) as { version: unknown }).version);
  } catch (error) {
    const above = new URL('..', folder);
    if (errnoOf(error) !== 'ENOENT' || above.href === folder.href) throw error;
    return readVersion(above);
  }
}
