// What a process has cost: all of its cgroup, or else its root and the descendants that their parents, or we, have waited for.

import type { Usage } from '../../protocol/process.ts';
import type { GroupUse } from '../../system/confine/group-use.ts';
import type { RootUse } from '../child/child.ts';
import { ownPeakBytes, type Used } from '../../system/resources.ts';

export class ResourceUse {
  /** As last read. */
  group: GroupUse | undefined;
  private readonly read: (() => GroupUse | undefined) | undefined;
  private total: Used | undefined;
  private leastPeakBytes = 0;
  private partial = false;
  private stored: Usage | undefined;

  constructor(read?: () => GroupUse | undefined) {
    this.read = read;
  }

  /** At the exit of the root, and when nobody is left: a group that was found empty has counted everything. */
  readGroup(): void {
    if (this.group?.populated === false) return;
    this.group = this.read?.() ?? this.group;
  }

  /** The root was reaped. */
  atExit(used: RootUse | undefined): void {
    if (used) this.add(used);
    if (used?.countsOrphans !== true) this.miss();
    this.readGroup();
  }

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
    const { total, stored } = this;
    if (!total) return stored;
    const hasLeft = this.hasLeft(total);
    const group = hasLeft ? undefined : this.group;
    const { userUs, systemUs } = group ?? total;
    return {
      userMs: Math.round(userUs / 1000),
      systemMs: Math.round(systemUs / 1000),
      ...this.peak(total.peakBytes, group),
      readBytes: group?.readBytes ?? total.readBytes,
      writtenBytes: group?.writtenBytes ?? total.writtenBytes,
      ...(group?.peakProcesses !== undefined && { peakProcesses: group.peakProcesses }),
      ...(group?.throttledUs !== undefined && {
        throttledMs: Math.round(group.throttledUs / 1000),
      }),
      by: group ? 'cgroup' : 'wait',
      complete: settled && (group ? !group.populated : !this.partial && !hasLeft),
    };
  }

  /** A program that wrote itself into another group was not counted in its own. */
  private hasLeft({ userUs, systemUs }: Used): boolean {
    const { group } = this;
    return group !== undefined && userUs + systemUs > group.userUs + group.systemUs + SLACK_US;
  }

  private peak(
    ofOneBytes: number,
    group: GroupUse | undefined,
  ): Pick<Usage, 'peakMemoryBytes' | 'peakMemoryAtMostBytes'> {
    const { leastPeakBytes } = this;
    if (group?.peakBytes !== undefined) return { peakMemoryBytes: group.peakBytes };
    return ofOneBytes > leastPeakBytes
      ? { peakMemoryBytes: ofOneBytes }
      : { peakMemoryAtMostBytes: ofOneBytes };
  }
}

/** Between two ways to count the same time. */
const SLACK_US = 10_000;
