// The disk of a host: Node's file functions plus system calls that Node lacks.

import { systemDisk, type Disk } from '../base/disk.ts';
import { loadPosix } from './posix.ts';
import { diskBeforeReserve } from './descriptor-reserve.ts';

export function hostDisk(): Disk {
  const posix = loadPosix();
  if (!posix) return systemDisk;
  const disk = { ...systemDisk, evictPages: (fd: number) => posix.evictPages(fd) };
  return diskBeforeReserve(disk, posix);
}
