// The secret of a host's folder, by which equal starts are recognised.

import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { errnoOf } from '../base/disk.ts';

const KEY_BYTES = 32;

/** A secret that is made once per folder. Where it cannot be kept it lasts as long as this program. */
export function folderKey(path: string): Buffer {
  const kept = readKey(path);
  if (kept) return kept;
  const made = randomBytes(KEY_BYTES);
  try {
    // Under another name first: a crash in between leaves no part of a key under this one.
    writeFileSync(`${path}.new`, made, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch {
    // A disk that takes no key now may take one the next time.
  }
  return made;
}

/** Undefined when there is none, or only the beginning of one that an earlier version left when it was killed. */
function readKey(path: string): Buffer | undefined {
  try {
    const key = readFileSync(path);
    return key.length === KEY_BYTES ? key : undefined;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
