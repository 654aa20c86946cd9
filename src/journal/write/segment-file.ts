// The file of the segment that is being written. It may have served before: what is left of its former records stands
// behind the new ones, parted from them by an end mark, until it is overwritten or cut.

import type { Disk } from '../../base/disk.ts';
import type { Segment } from '../read/segment.ts';

/** Eight zero bytes are never a record: its checksum would not match. The next append overwrites them. */
export const END_MARK = Buffer.alloc(8);

export class SegmentFile {
  readonly segment: Segment;
  /** What the usage of the disk was told of it. */
  counted = 0;
  private readonly disk: Disk;
  private readonly fd: number;
  /** The opening record, until something is written behind it. */
  private header: Buffer | undefined;
  private fileBytes: number;
  private closed = false;
  /** Writes and syncs that a thread is at: until they are over the descriptor must not be given to another file. */
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(disk: Disk, file: { segment: Segment; fd: number; bytes: number; header: Buffer }) {
    this.disk = disk;
    this.segment = file.segment;
    this.fd = file.fd;
    this.header = file.header;
    this.fileBytes = file.bytes;
  }

  /** A thread writes or syncs it. */
  get busy(): boolean {
    return this.underWay.size > 0;
  }

  get occupies(): number {
    return Math.max(this.fileBytes, this.segment.size);
  }

  /** What stands behind its records. */
  get leftBytes(): number {
    return this.occupies - this.segment.size;
  }

  /** Records that are so many bytes together. */
  writeSync(records: readonly Buffer[], bytes: number): void {
    const wanted = this.headerBytes + bytes;
    const parts = this.framed(records, wanted);
    let written = this.disk.writeSync(this.fd, parts, this.segment.size);
    while (written < wanted) {
      const rest = Buffer.concat(parts).subarray(written);
      written += some(this.disk.writeSync(this.fd, [rest], this.segment.size + written));
    }
    this.wrote(wanted);
  }

  write(records: readonly Buffer[], bytes: number): Promise<void> {
    return this.during(this.writeOn(records, bytes));
  }

  /** Makes what has been written survive a loss of power. */
  sync(): Promise<void> {
    return this.during(this.disk.sync(this.fd));
  }

  private async writeOn(records: readonly Buffer[], bytes: number): Promise<void> {
    const wanted = this.headerBytes + bytes;
    const parts = this.framed(records, wanted);
    let written = await this.disk.write(this.fd, parts, this.segment.size);
    // A short write is no error to Node: what follows either fits after all or says why not.
    while (written < wanted) {
      const rest = Buffer.concat(parts).subarray(written);
      written += some(await this.disk.write(this.fd, [rest], this.segment.size + written));
    }
    this.wrote(wanted);
  }

  /** Nothing stands behind its records afterwards, nor what a failed write may have left there. */
  cut(): void {
    this.fileBytes = this.segment.size;
    if (this.closed) return;
    this.disk.truncate(this.fd, this.segment.size);
  }

  /** Only its records are left of it; where a write is still under way, what that leaves is cut when it is next opened. */
  close(): void {
    const left = this.leftBytes > 0;
    this.fileBytes = this.segment.size;
    if (this.underWay.size > 0) {
      void Promise.allSettled(this.underWay).then(() => this.closeNow());
      return;
    }
    if (left) tryTo(() => this.cut());
    this.closeNow();
  }

  private closeNow(): void {
    this.closed = true;
    tryTo(() => this.disk.close(this.fd));
  }

  private during<T>(work: Promise<T>): Promise<T> {
    const done = work.finally(() => this.underWay.delete(done));
    this.underWay.add(done);
    return done;
  }

  private get headerBytes(): number {
    return this.header?.length ?? 0;
  }

  private framed(records: readonly Buffer[], bytes: number): readonly Buffer[] {
    const parts = this.header ? [this.header, ...records] : records;
    const behind = this.leftBytes - bytes;
    return behind > 0 ? [...parts, END_MARK.subarray(0, behind)] : parts;
  }

  private wrote(bytes: number): void {
    this.fileBytes = Math.max(this.fileBytes, this.segment.size + bytes);
    // One that another journal began keeps that beginning.
    this.segment.openingBytes ||= this.headerBytes;
    this.segment.size += this.headerBytes;
    this.header = undefined;
  }
}

function some(written: number): number {
  if (written === 0) throw new Error('the disk takes no more bytes');
  return written;
}

/** For clean-up on a disk that is already failing: what fails here is found and cut when the journal is next opened. */
export function tryTo(action: () => void): void {
  try {
    action();
  } catch {
    return;
  }
}
