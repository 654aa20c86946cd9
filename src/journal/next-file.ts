// The file of the next segment, made ahead in the background: to make a file can take longer than to fill one. Left by a
// killed keeper it is empty.

import type { Disk } from '../base/disk.ts';
import type { Segment } from './segment.ts';

export class NextFile {
  readonly segment: Segment;
  /** Resolves when it is there, or cannot be made. */
  readonly made: Promise<void>;
  /** Whoever needs it makes it then, and learns what is wrong. */
  failed = false;
  private readonly disk: Disk;
  private fd: number | undefined;
  private dropped = false;

  constructor(disk: Disk, segment: Segment) {
    this.disk = disk;
    this.segment = segment;
    this.made = disk.createSoon(segment.path).then(
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
    this.disk.removeSoon(this.segment.path);
  }
}
