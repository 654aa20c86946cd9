// Disk space in reserve: a file that is given up when a full disk would keep the outcomes of processes from being stored
// before the host closes.

import { randomBytes } from 'node:crypto';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { errnoOf } from '../../base/disk.ts';

/** An outcome takes a block of 4 KiB at most: enough for 64 processes. */
const RESERVE_BYTES = 256 * 1024;

export class Reserve {
  private readonly path: string;
  private readonly report: (message: string) => void;

  constructor(path: string, report: (message: string) => void) {
    this.path = path;
    this.report = report;
  }

  /** To be called again when a disk that had no room for it takes something. */
  fill(): void {
    try {
      const there = statSync(this.path, { throwIfNoEntry: false });
      if (there?.size === RESERVE_BYTES) return;
      // Random, so that no file system stores it as nothing.
      writeFileSync(this.path, randomBytes(RESERVE_BYTES), { mode: 0o600 });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.report(`no disk space could be reserved for outcomes: ${reason}`);
      // The part that was written would only fill the disk.
      if (['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) this.free();
    }
  }

  free(): void {
    rmSync(this.path, { force: true });
  }
}
