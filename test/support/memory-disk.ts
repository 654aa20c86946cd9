// A disk in memory that behaves like the real one, can be copied, cut and damaged at will, and fails when told to.

import type { Disk } from '../../src/base/disk.ts';

interface OpenFile {
  readonly path: string;
  readonly file: { bytes: Buffer };
}

export class MemoryDisk implements Disk {
  readonly files = new Map<string, { bytes: Buffer }>();
  /** Bytes it still takes before it is full: then a write is short first and fails afterwards, as the kernel does it. */
  freeBytes = Infinity;
  /** Thrown by every write while set. */
  failure: string | undefined;
  private readonly open = new Map<number, OpenFile>();
  private lastFd = 100;

  create(path: string): number {
    if (this.failure !== undefined) throw errno(this.failure);
    if (this.files.has(path)) throw errno('EEXIST');
    this.files.set(path, { bytes: Buffer.alloc(0) });
    return this.openRead(path);
  }

  async createAsync(path: string): Promise<number> {
    return this.create(path);
  }

  openWrite(path: string): number {
    if (this.failure !== undefined) throw errno(this.failure);
    return this.openRead(path);
  }

  rename(from: string, to: string): void {
    const file = this.files.get(from);
    if (!file) throw errno('ENOENT');
    this.files.delete(from);
    this.files.set(to, file);
  }

  async renameAsync(from: string, to: string): Promise<void> {
    this.rename(from, to);
  }

  openRead(path: string): number {
    const file = this.files.get(path);
    if (!file) throw errno('ENOENT');
    this.lastFd += 1;
    this.open.set(this.lastFd, { path, file });
    return this.lastFd;
  }

  /** What is overwritten needs no freeBytes. */
  writeSync(fd: number, parts: readonly Buffer[], position: number): number {
    if (this.failure !== undefined) throw errno(this.failure);
    const bytes = Buffer.concat(parts);
    const { file } = this.at(fd);
    const taken = Math.min(bytes.length, this.freeBytes + file.bytes.length - position);
    if (taken === 0 && bytes.length > 0) throw errno('ENOSPC');
    const before = file.bytes.length;
    file.bytes = Buffer.concat([
      file.bytes.subarray(0, position),
      bytes.subarray(0, taken),
      file.bytes.subarray(position + taken),
    ]);
    this.freeBytes -= file.bytes.length - before;
    return taken;
  }

  async write(fd: number, parts: readonly Buffer[], position: number): Promise<number> {
    return this.writeSync(fd, parts, position);
  }

  async read(fd: number, into: Buffer, position: number): Promise<number> {
    return this.readSync(fd, into, position);
  }

  readSync(fd: number, into: Buffer, position: number): number {
    return this.at(fd).file.bytes.copy(into, 0, position);
  }

  truncate(fd: number, size: number): void {
    const { file } = this.at(fd);
    this.freeBytes += file.bytes.length - size;
    file.bytes = file.bytes.subarray(0, size);
  }

  truncatePath(path: string, size: number): void {
    const file = this.files.get(path);
    if (file) file.bytes = file.bytes.subarray(0, size);
  }

  size(fd: number): number {
    return this.at(fd).file.bytes.length;
  }

  async sync(): Promise<void> {
    if (this.failure !== undefined) throw errno(this.failure);
  }

  async evictPages(): Promise<void> {}

  close(fd: number): void {
    if (!this.open.delete(fd)) throw errno('EBADF');
  }

  remove(path: string): void {
    this.freeBytes += this.files.get(path)?.bytes.length ?? 0;
    this.files.delete(path);
  }

  removeInBackground(path: string): void {
    this.remove(path);
  }

  get openFiles(): number {
    return this.open.size;
  }

  get bytes(): number {
    let sum = 0;
    for (const file of this.files.values()) sum += file.bytes.length;
    return sum;
  }

  private at(fd: number): OpenFile {
    const found = this.open.get(fd);
    if (!found) throw errno('EBADF');
    return found;
  }
}

function errno(code: string): Error {
  return Object.assign(new Error(`${code}: made to fail`), { code });
}
