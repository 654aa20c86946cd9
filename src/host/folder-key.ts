// The secret of a host's folder, which recognises equal starts.

import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { errnoOf } from '../base/disk.ts';

const KEY_BYTES = 32;

/** Made once per folder. If it cannot be stored, it lasts as long as this program. */
export function folderKey(path: string): Buffer {
  const kept = readKey(path);
  if (kept) return kept;
  const made = randomBytes(KEY_BYTES);
  try {
    // Written under another name first, so that a crash leaves no partial key.
    writeFileSync(`${path}.new`, made, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch {
    // If the disk refuses it now, the next host stores a new one.
  }
  return made;
}

/** Undefined if there is none, or only a partial one of an earlier version. */
function readKey(path: string): Buffer | undefined {
  try {
    const key = readFileSync(path);
    return key.length === KEY_BYTES ? key : undefined;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
