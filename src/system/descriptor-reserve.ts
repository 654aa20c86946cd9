// Keeps the highest descriptors in reserve. The kernel assigns the lowest free number, so the highest stay free as long as
// we keep nothing open there. Short uses (reads of /proc, pidfds, new connections) may take them, so that a keeper can
// always end its processes.

import { closeSync } from 'node:fs';
import { systemDisk, type Disk } from '../base/disk.ts';
import { loadPosix, type Posix } from './posix.ts';
import { PosixError, tryQuery } from './posix-library.ts';

const MOST_RESERVED = 64;
/** At most this fraction of a small table. */
const SHARE = 4;

/**
 * Whether a descriptor is in the reserve. `share`: only that fraction of the reserve. False where the kernel does not
 * report the size of the table, as under a seccomp filter.
 */
export function isReserved(posix: Posix, fd: number, share = 1): boolean {
  const limit = tryQuery(() => posix.descriptorLimit()) ?? Infinity;
  return fd >= limit - Math.min(MOST_RESERVED, Math.floor(limit / SHARE)) * share;
}

/** Throws EMFILE, as the kernel does for a full table, if one of these is in the reserve. */
export function refuseReserved(posix: Posix, fds: readonly number[]): void {
  if (fds.some((fd) => isReserved(posix, fd))) throw new PosixError('EMFILE', 'open');
}

/** A disk that keeps no file open in the reserve. Short reads may use it. */
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

/** The disk of a host: Node's file functions plus system calls that Node lacks. */
export function hostDisk(): Disk {
  const posix = loadPosix();
  if (!posix) return systemDisk;
  const disk = { ...systemDisk, evictPages: (fd: number) => posix.evictPages(fd) };
  return diskBeforeReserve(disk, posix);
}
