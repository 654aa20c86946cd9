// The version of this program, as its package says.

import { readFileSync } from 'node:fs';
import { errnoOf } from './disk.ts';

export const VERSION: string = readVersion(new URL('.', import.meta.url));

/** Looks in `folder` and those above it: a worker is bundled into one file, which lies at another depth than this one. */
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
