// A file that a command writes for its user: private, and not over another one unasked.

import { constants, fchmodSync, openSync, statSync } from 'node:fs';
import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';

/** `what` writes: the name of the command, for the error. */
export function openTarget(what: string, path: string, overwrite: boolean): number {
  const { O_WRONLY, O_CREAT, O_EXCL, O_TRUNC } = constants;
  try {
    // A device or a pipe is written to, not replaced.
    const there = statSync(path, { throwIfNoEntry: false });
    if (there && !there.isFile()) return openSync(path, O_WRONLY);
    const fd = openSync(path, O_WRONLY | O_CREAT | (overwrite ? O_TRUNC : O_EXCL), 0o600);
    fchmodSync(fd, 0o600);
    return fd;
  } catch (error) {
    const exists = errnoOf(error) === 'EEXIST';
    const problem = exists
      ? 'exists; --force overwrites it'
      : `cannot be written: ${errnoOf(error) ?? String(error)}`;
    throw new HoldfastError('invalid_input', `${what}: ${path} ${problem}.`, { field: 'FILE' });
  }
}
