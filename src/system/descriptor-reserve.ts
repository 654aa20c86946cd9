// Descriptors in reserve. The kernel gives the lowest free number, so the highest numbers stay free as long as nothing is
// opened there to be kept. Reads of /proc, pidfds and new connections take them: a keeper can always end what it holds.

import { closeSync } from 'node:fs';
import type { Disk } from '../base/disk.ts';
import type { Posix } from './posix.ts';
import { asked, PosixError } from './posix-library.ts';

const MOST_RESERVED = 64;
/** Of a small table no more than a part. */
const SHARE = 4;

/**
 * Whether a descriptor is one of the last of the table. `share` counts only that part of the reserve. Where the kernel does
 * not tell how large the table is, as under a filter of system calls, none is.
 */
export function isReserved(posix: Posix, fd: number, share = 1): boolean {
  const limit = asked(() => posix.descriptorLimit()) ?? Infinity;
  return fd >= limit - Math.min(MOST_RESERVED, Math.floor(limit / SHARE)) * share;
}

/** Throws EMFILE, as the kernel does at the end of its table, when one of these is to be kept and is of the reserve. */
export function refuseReserved(posix: Posix, fds: readonly number[]): void {
  if (fds.some((fd) => isReserved(posix, fd))) throw new PosixError('EMFILE', 'open');
}

/** A disk whose files, as far as they are kept open, are none of the reserve. What is read for a moment may be. */
export function diskBeforeReserve(disk: Disk, posix: Posix): Disk {
  const refuse = (fd: number): void => {
    if (!isReserved(posix, fd)) return;
    closeSync(fd);
    throw Object.assign(new Error('EMFILE: the last file descriptors are kept in reserve'), {
      code: 'EMFILE',
    });
  };
  const made = (fd: number, path: string): number => {
    try {
      refuse(fd);
    } catch (error) {
      disk.remove(path);
      throw error;
    }
    return fd;
  };
  return {
    ...disk,
    create: (path) => made(disk.create(path), path),
    createAsync: async (path) => made(await disk.createAsync(path), path),
    openWrite: (path) => {
      const fd = disk.openWrite(path);
      if (fd !== undefined) refuse(fd);
      return fd;
    },
  };
}
