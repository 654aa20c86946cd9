// The file of the segment that is being written. A reused file still has old records after the new ones, separated by an
// end mark, until they are overwritten or truncated.

import type { Disk } from '../../base/disk.ts';
import type { Segment } from '../read/segment.ts';

/** Eight zero bytes are never a record: its checksum would not match. The next append overwrites them. */
export const END_MARK = Buffer.alloc(8);

export class SegmentFile {
  readonly segment: Segment;
  /** Its bytes as counted in the disk usage. */
  counted = 0;
  private readonly disk: Disk;
  private readonly fd: number;
  /** The opening record, until the first write. */
  private header: Buffer | undefined;
  private fileBytes: number;
  private closed = false;
  /** Writes and syncs in the thread pool: until they end, the descriptor must not be reused. */
  private readonly pending = new Set<Promise<unknown>>();

  constructor(disk: Disk, file: { segment: Segment; fd: number; bytes: number; header: Buffer }) {
    this.disk = disk;
    this.segment = file.segment;
    this.fd = file.fd;
    this.header = file.header;
    this.fileBytes = file.bytes;
  }

  /** A thread is writing or syncing it. */
  get busy(): boolean {
    return this.pending.size > 0;
  }

  get occupies(): number {
    return Math.max(this.fileBytes, this.segment.size);
  }

  /** Bytes of old records after the new ones. */
  get leftBytes(): number {
    return this.occupies - this.segment.size;
  }

  /** `bytes`: the size of all records. */
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
    return this.track(this.writeAsync(records, bytes));
  }

  sync(): Promise<void> {
    return this.track(this.disk.sync(this.fd));
  }

  private async writeAsync(records: readonly Buffer[], bytes: number): Promise<void> {
    const wanted = this.headerBytes + bytes;
    const parts = this.framed(records, wanted);
    let written = await this.disk.write(this.fd, parts, this.segment.size);
    // A short write is not an error; the next one succeeds or fails with the reason.
    while (written < wanted) {
      const rest = Buffer.concat(parts).subarray(written);
      written += some(await this.disk.write(this.fd, [rest], this.segment.size + written));
    }
    this.wrote(wanted);
  }

  /** Removes everything after its records. */
  truncate(): void {
    this.fileBytes = this.segment.size;
    if (this.closed) return;
    this.disk.truncate(this.fd, this.segment.size);
  }

  /** Truncates and closes. If a write is pending, recovery truncates what that leaves. */
  close(): void {
    const left = this.leftBytes > 0;
    this.fileBytes = this.segment.size;
    if (this.pending.size > 0) {
      void Promise.allSettled(this.pending).then(() => this.closeNow());
      return;
    }
    if (left) tryTo(() => this.truncate());
    this.closeNow();
  }

  private closeNow(): void {
    this.closed = true;
    tryTo(() => this.disk.close(this.fd));
  }

  private track<T>(work: Promise<T>): Promise<T> {
    const done = work.finally(() => this.pending.delete(done));
    this.pending.add(done);
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
    // A reused file keeps the opening record of the other journal.
    this.segment.openingBytes ||= this.headerBytes;
    this.segment.size += this.headerBytes;
    this.header = undefined;
  }
}

function some(written: number): number {
  if (written === 0) throw new Error('the disk takes no more bytes');
  return written;
}

/** For clean-up on a disk that already fails; recovery truncates what is left. */
export function tryTo(action: () => void): void {
  try {
    action();
  } catch {
    return;
  }
}
