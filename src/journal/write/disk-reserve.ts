// Disk space in reserve: a file that is deleted when a closing host cannot store outcomes on a full disk.

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

  /** Call it again when a full disk works again. */
  fill(): void {
    try {
      const there = statSync(this.path, { throwIfNoEntry: false });
      if (there?.size === RESERVE_BYTES) return;
      // Random bytes, because some file systems do not store zeros.
      writeFileSync(this.path, randomBytes(RESERVE_BYTES), { mode: 0o600 });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.report(`no disk space could be reserved for outcomes: ${reason}`);
      // Delete the part that was written, which fills the disk.
      if (['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) this.free();
    }
  }

  free(): void {
    rmSync(this.path, { force: true });
  }
}
