// What a process has cost: its root and the descendants that their parents, or we, have waited for.

import type { Usage } from '../../protocol/process.ts';
import { ownPeakBytes, type Used } from '../../system/resources.ts';

export class ResourceUse {
  private total: Used | undefined;
  private leastPeakBytes = 0;
  private partial = false;
  private stored: Usage | undefined;

  /** Of the root or of an orphan, when it is reaped. */
  add(used: Used): void {
    const { total } = this;
    this.leastPeakBytes = Math.max(this.leastPeakBytes, ownPeakBytes());
    this.total = {
      userUs: used.userUs + (total?.userUs ?? 0),
      systemUs: used.systemUs + (total?.systemUs ?? 0),
      peakBytes: Math.max(used.peakBytes, total?.peakBytes ?? 0),
      readBytes: used.readBytes + (total?.readBytes ?? 0),
      writtenBytes: used.writtenBytes + (total?.writtenBytes ?? 0),
    };
  }

  /** Something that may be a descendant has ended uncounted. */
  miss(): void {
    this.partial = true;
  }

  /** Read back from the journal: descendants that ended later were not counted. */
  restore(stored: Usage | undefined): void {
    this.stored = stored && { ...stored, complete: false };
  }

  /** Undefined until the root has been reaped. */
  usage(settled: boolean): Usage | undefined {
    const { total, leastPeakBytes, partial, stored } = this;
    if (!total) return stored;
    const { peakBytes, readBytes, writtenBytes } = total;
    return {
      userMs: Math.round(total.userUs / 1000),
      systemMs: Math.round(total.systemUs / 1000),
      ...(peakBytes > leastPeakBytes
        ? { peakMemoryBytes: peakBytes }
        : { peakMemoryAtMostBytes: peakBytes }),
      readBytes,
      writtenBytes,
      by: 'wait',
      complete: settled && !partial,
    };
  }
}
