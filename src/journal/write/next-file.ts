// The file of the next segment, made ready in the background: to make a file can take longer than to fill one. It is a new
// one, or that of a segment which is dropped for it: to overwrite what the page cache holds costs half of what new pages
// do. Left by a killed keeper it does not begin as a segment of its number.

import type { Disk } from '../../base/disk.ts';
import type { Segment } from '../read/segment.ts';

export class NextFile {
  readonly segment: Segment;
  /** Resolves when it is there, or cannot be made. */
  readonly made: Promise<void>;
  /** Whoever needs it makes it then, and learns what is wrong. */
  failed = false;
  /** What it occupies. */
  bytes: number;
  private readonly disk: Disk;
  private fd: number | undefined;
  private dropped = false;

  constructor(disk: Disk, segment: Segment, old?: Segment) {
    this.disk = disk;
    this.segment = segment;
    this.bytes = old?.size ?? 0;
    this.made = (old ? this.rename(old) : disk.createAsync(segment.path)).then(
      (fd) => {
        this.fd = fd;
        if (this.dropped) this.drop();
      },
      () => {
        this.failed = true;
      },
    );
  }

  get coming(): boolean {
    return this.fd === undefined && !this.failed;
  }

  /** The descriptor, which is the caller's from now on. */
  take(): number | undefined {
    const { fd } = this;
    this.fd = undefined;
    return fd;
  }

  /** It is not needed. */
  drop(): void {
    this.dropped = true;
    const fd = this.take();
    if (fd === undefined) return;
    this.disk.close(fd);
    this.disk.removeInBackground(this.segment.path);
  }

  private async rename(old: Segment): Promise<number> {
    const { disk, segment } = this;
    let fd: number | undefined;
    try {
      fd = disk.openWrite(old.path);
      if (fd !== undefined) {
        await disk.renameAsync(old.path, segment.path);
        return fd;
      }
    } catch {
      // A new one may still be had, or says what is wrong.
      if (fd !== undefined) disk.close(fd);
    }
    this.bytes = 0;
    disk.removeInBackground(old.path);
    return disk.createAsync(segment.path);
  }
}
