// The file operations that journals use. Injected, so that a test can use a failing disk. Files are private whatever
// the umask. Errors are Node's own, with `code` set.

import * as fs from 'node:fs';

export interface Disk {
  /** Creates a file for writing and reading, mode 0600; fails if it exists. */
  create(path: string): number;
  /** The same in the thread pool: on ext4 with many removals, creating a file takes as long as starting a program. */
  createAsync(path: string): Promise<number>;
  /** Opens a file for writing and reading; undefined if it has a second hard link. */
  openWrite(path: string): number | undefined;
  openRead(path: string): number;
  /** Returns the bytes written. On a full disk that can be fewer than given, without an error. */
  writeSync(fd: number, parts: readonly Buffer[], position: number): number;
  write(fd: number, parts: readonly Buffer[], position: number): Promise<number>;
  read(fd: number, into: Buffer, position: number): Promise<number>;
  readSync(fd: number, into: Buffer, position: number): number;
  truncate(fd: number, size: number): void;
  /** Truncates a file by path. On a read-only or failing disk the file stays as it is. */
  truncatePath(path: string, size: number): void;
  size(fd: number): number;
  sync(fd: number): Promise<void>;
  /** Evicts synced pages from the page cache. Does nothing here: Node has no call for it. */
  evictPages(fd: number): Promise<void>;
  close(fd: number): void;
  rename(from: string, to: string): void;
  renameAsync(from: string, to: string): Promise<void>;
  remove(path: string): void;
  /** In the thread pool: the kernel needs a third of a millisecond to free a segment. */
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
        // libuv retries other calls after EINTR, but not reads.
        if (errnoOf(error) !== 'EINTR') throw error;
      }
    }
  },
  truncate: (fd, size) => fs.ftruncateSync(fd, size),
  truncatePath(path, size) {
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
  evictPages: () => Promise.resolve(),
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

/** The errno name of a thrown system error; undefined for anything else. */
export function errnoOf(thrown: unknown): string | undefined {
  if (thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string')
    return thrown.code;
  return undefined;
}
