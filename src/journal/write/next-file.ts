// Prepares the file of the next segment in the thread pool, because creating a file can take longer than filling one. It is
// a new file, or that of a segment that is dropped: overwriting pages in the page cache costs half as much as new pages. If
// the keeper is killed, recovery recognises the file because it does not begin with an opening record of its number.

import type { Disk } from '../../base/disk.ts';
import type { Segment } from '../read/segment.ts';

export class NextFile {
  readonly segment: Segment;
  /** Resolves when the file exists or could not be created. */
  readonly ready: Promise<void>;
  /** The next segment then creates its file itself, and reports the error. */
  failed = false;
  /** Bytes that it occupies. */
  bytes: number;
  private readonly disk: Disk;
  private fd: number | undefined;
  private dropped = false;

  constructor(disk: Disk, segment: Segment, old?: Segment) {
    this.disk = disk;
    this.segment = segment;
    this.bytes = old?.size ?? 0;
    this.ready = (old ? this.rename(old) : disk.createAsync(segment.path)).then(
      (fd) => {
        this.fd = fd;
        if (this.dropped) this.drop();
      },
      () => {
        this.failed = true;
      },
    );
  }

  get isPending(): boolean {
    return this.fd === undefined && !this.failed;
  }

  /** Passes the descriptor to the caller. */
  take(): number | undefined {
    const { fd } = this;
    this.fd = undefined;
    return fd;
  }

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
      // Try a new file, which succeeds or fails with the reason.
      if (fd !== undefined) disk.close(fd);
    }
    this.bytes = 0;
    disk.removeInBackground(old.path);
    return disk.createAsync(segment.path);
  }
}
