// The disk: the few file operations that the journal is written with, so that a test can stand a failing disk in their
// place. Modes are private whatever the umask. Errors are Node's own, with `code` set.

import * as fs from 'node:fs';

export interface Disk {
  /** A new file for writing and reading, 0600; fails when it exists. */
  create(path: string): number;
  /** The same in the background: on ext4, where files are removed all the time, it takes as long as to start a program. */
  createAsync(path: string): Promise<number>;
  /** A file that exists, for writing and reading; undefined when it has another name too. */
  openWrite(path: string): number | undefined;
  openRead(path: string): number;
  /** Returns how much was taken, which on a full disk can be less than asked, without an error. */
  writeSync(fd: number, parts: readonly Buffer[], position: number): number;
  write(fd: number, parts: readonly Buffer[], position: number): Promise<number>;
  read(fd: number, into: Buffer, position: number): Promise<number>;
  readSync(fd: number, into: Buffer, position: number): number;
  truncate(fd: number, size: number): void;
  /** Shortens a file that is not open. On a disk that cannot be written the file stays as it is. */
  cut(path: string, size: number): void;
  size(fd: number): number;
  sync(fd: number): Promise<void>;
  /** What has been synced need not stay in memory. Nothing by itself: Node has no call for it. */
  forgetPages(fd: number): Promise<void>;
  close(fd: number): void;
  rename(from: string, to: string): void;
  renameAsync(from: string, to: string): Promise<void>;
  remove(path: string): void;
  /** In the background: to free a segment takes the kernel a third of a millisecond. */
  removeInBackground(path: string): void;
}

const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
const NEW_FILE = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;

export const systemDisk: Disk = {
  create: (path) => fs.openSync(path, NEW_FILE, 0o600),
  createAsync(path) {
    return new Promise((resolve, reject) => {
      fs.open(path, NEW_FILE, 0o600, (error, fd) => (error ? reject(error) : resolve(fd)));
    });
  },
  openWrite(path) {
    const fd = fs.openSync(path, O_RDWR | O_NOFOLLOW);
    if (fs.fstatSync(fd).nlink === 1) return fd;
    fs.closeSync(fd);
    return undefined;
  },
  openRead: (path) => fs.openSync(path, fs.constants.O_RDONLY | O_NOFOLLOW),
  writeSync(fd, parts, position) {
    const [only] = parts;
    if (parts.length === 1 && only) return fs.writeSync(fd, only, 0, only.length, position);
    return fs.writevSync(fd, parts, position);
  },
  write(fd, parts, position) {
    return new Promise((resolve, reject) => {
      const done = (error: Error | null, written: number): void =>
        error ? reject(error) : resolve(written);
      const [only] = parts;
      if (parts.length === 1 && only) fs.write(fd, only, 0, only.length, position, done);
      else fs.writev(fd, parts as Buffer[], position, done);
    });
  },
  read(fd, into, position) {
    return new Promise((resolve, reject) => {
      const ask = (): void =>
        fs.read(fd, into, 0, into.length, position, (error, bytesRead) => {
          if (error?.code === 'EINTR') ask();
          else if (error) reject(error);
          else resolve(bytesRead);
        });
      ask();
    });
  },
  readSync(fd, into, position) {
    for (;;) {
      try {
        return fs.readSync(fd, into, 0, into.length, position);
      } catch (error) {
        // libuv repeats every other call that a signal has interrupted, and leaves reads to its caller.
        if (errnoOf(error) !== 'EINTR') throw error;
      }
    }
  },
  truncate: (fd, size) => fs.ftruncateSync(fd, size),
  cut(path, size) {
    try {
      fs.truncateSync(path, size);
    } catch (error) {
      if (!['EROFS', 'EACCES', 'EPERM', 'EIO'].includes(errnoOf(error) ?? '')) throw error;
    }
  },
  size: (fd) => fs.fstatSync(fd).size,
  sync(fd) {
    return new Promise((resolve, reject) => {
      fs.fdatasync(fd, (error) => (error ? reject(error) : resolve()));
    });
  },
  forgetPages: () => Promise.resolve(),
  close: (fd) => fs.closeSync(fd),
  rename: (from, to) => fs.renameSync(from, to),
  renameAsync(from, to) {
    return new Promise((resolve, reject) => {
      fs.rename(from, to, (error) => (error ? reject(error) : resolve()));
    });
  },
  remove(path) {
    try {
      fs.unlinkSync(path);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
  },
  removeInBackground: (path) => fs.unlink(path, () => undefined),
};

/** The errno name of a thrown file error, or undefined for anything else. */
export function errnoOf(thrown: unknown): string | undefined {
  if (thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string')
    return thrown.code;
  return undefined;
}
