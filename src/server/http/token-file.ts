// Files that hold secrets and tokens: read without blocking, changed under a lock, replaced as a whole or not at all.

import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf } from '../../base/disk.ts';
import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { loadPosix } from '../../system/posix.ts';
import { openPrivate } from '../../keeper/home.ts';

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_WRONLY, O_RDWR, O_EXCL } = constants;

/** The text of a regular file; undefined if it does not exist. A FIFO or a directory is an error and never blocks. */
export function readPrivate(path: string): string | undefined {
  let fd: number;
  try {
    // Without O_NONBLOCK the kernel waits for the other end of a FIFO.
    fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    if (!fstatSync(fd).isFile())
      throw new HoldfastError('home_unsafe', `${path} is not a regular file; remove it.`);
    return readFileSync(fd, 'utf8');
  } finally {
    closeSync(fd);
  }
}

/** Replaces the file atomically. */
export function replacePrivate(path: string, text: string): void {
  writeBeside(path, text, (beside) => renameSync(beside, path));
}

/** Creates a file unless it exists: if two programs do this at once, one wins and both read its text. */
export function createPrivate(path: string, text: string): void {
  writeBeside(path, text, (beside) => {
    try {
      linkSync(beside, path);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
  });
}

/**
 * Runs a read-modify-write while no other program does. It blocks the event loop until the lock is free; a holder keeps
 * it for a few milliseconds.
 */
export function withLock<T>(lockPath: string, change: () => T): T {
  const fd = openPrivate(lockPath, O_RDWR);
  try {
    loadPosix()?.lock(fd);
    return change();
  } finally {
    closeSync(fd);
  }
}

function writeBeside(path: string, text: string, place: (beside: string) => void): void {
  const beside = `${path}.${randomId().slice(0, 8)}`;
  try {
    const fd = openPrivate(beside, O_WRONLY | O_EXCL);
    try {
      writeWhole(fd, Buffer.from(text));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    place(beside);
    syncFolder(dirname(path));
  } catch (error) {
    throw storageProblem(error, path);
  } finally {
    rmSync(beside, { force: true });
  }
}

/** On a full disk `write` takes less than it was given and says so only in its result. */
function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) {
    const taken = writeSync(fd, bytes, at);
    if (taken === 0) throw Object.assign(new Error('nothing was written'), { code: 'ENOSPC' });
    at += taken;
  }
}

/** Without this a power loss can undo the rename. */
function syncFolder(folder: string): void {
  const fd = openSync(folder, O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function storageProblem(error: unknown, path: string): unknown {
  const code = errnoOf(error);
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${path} was not written and is as it was before: ${reason}.`;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return new HoldfastError('storage_full', message);
  if (code === 'EROFS' || code === 'EACCES' || code === 'EIO')
    return new HoldfastError('storage_unavailable', message);
  return error;
}
