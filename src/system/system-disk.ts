// The disk of a host: the system's, with what only system calls can do.

import { systemDisk, type Disk } from '../base/disk.ts';
import { loadPosix } from './posix.ts';
import { diskBeforeReserve } from './descriptor-reserve.ts';

/** Where system calls can be made, memory lets go of what is put away. */
export function hostDisk(): Disk {
  const posix = loadPosix();
  if (!posix) return systemDisk;
  const disk = { ...systemDisk, forgetPages: (fd: number) => posix.forgetPages(fd) };
  return diskBeforeReserve(disk, posix);
}
