// Spare journals, made before a process needs them. Creating a file costs as much as starting a program, and more on
// ext4 after many deletions; so it happens in the background.

import type { BufferPool } from '../../base/bytes/buffer-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { errnoOf, type Disk } from '../../base/disk.ts';
import { randomId } from '../../base/ids.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Limits } from '../../protocol/limits.ts';
import type { EndedJournal } from '../../journal/read/ended-journal.ts';
import { Journal } from '../../journal/write/journal.ts';
import type { DiskUsage } from '../../journal/write/disk-usage.ts';
import { removeSegments, type RefusedRemoval, type Segment } from '../../journal/read/segment.ts';

/** A spare journal left by a killed keeper has no event, and is removed. */
export interface Spare {
  readonly serial: string;
  readonly journal: Journal;
}

export interface SpareOptions {
  readonly folder: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly pool: BufferPool;
  readonly usage: DiskUsage;
  readonly limits: Limits;
  /** Called for each spare, when there is time. */
  readonly prepared?: (serial: string) => void;
}

/** Number of spare journals: each is an open file. */
const MOST_MADE = 16;
/** Upper bound of reused files; the target grows with the largest burst of starts. */
const MOST_KEPT = 256;
/** Files that could not be removed: a few are retried with each removal. */
const MOST_UNREMOVED = 1024;
const TRIED_AGAIN = 16;

export class SpareJournals {
  private readonly options: SpareOptions;
  private readonly spares: Spare[] = [];
  /** Target number: grows when starts come faster than spares are made. */
  private wanted = 1;
  private readonly making = new Set<Promise<void>>();
  private closed = false;
  /** What does not fit here, or remains at the end, is found by the next keeper. */
  private unremoved: Segment[] = [];

  constructor(options: SpareOptions) {
    this.options = options;
  }

  take(): Spare {
    const spare = this.spares.pop();
    if (spare) return spare;
    this.wanted = Math.min(MOST_KEPT, this.wanted * 2);
    const made = this.create();
    try {
      made.journal.open();
    } catch (error) {
      throw storageError(error);
    }
    return made;
  }

  /** A refused start has used nothing: the next one can use it. */
  giveBack(spare: Spare): void {
    if (this.spares.length < this.wanted) this.spares.push(spare);
    else spare.journal.remove();
  }

  /** Makes several together when half are used, because waking the threads costs most. */
  prepare(): void {
    const wanted = Math.min(MOST_MADE, this.wanted);
    if (this.closed || (this.spares.length + this.making.size) * 2 > wanted) return;
    while (this.spares.length + this.making.size < wanted) {
      const made = this.make().finally(() => this.making.delete(made));
      this.making.add(made);
    }
  }

  /**
   * Removes the files of a deleted process. A small file becomes a spare, because deleting and creating one takes many
   * times longer, on ext4 increasingly so. Returns the problem if the disk refuses.
   */
  discard(journal: Journal | EndedJournal): HoldfastError | undefined {
    const again = this.unremoved.splice(0, TRIED_AGAIN);
    for (const { segment } of removeSegments(again)) this.unremoved.push(segment);
    const refused = journal instanceof Journal ? journal.remove() : this.reuseOrRemove(journal);
    const free = MOST_UNREMOVED - this.unremoved.length;
    this.unremoved.push(...refused.slice(0, free).map(({ segment }) => segment));
    return refused[0] && removalError(refused[0].error);
  }

  private reuseOrRemove(ended: EndedJournal): RefusedRemoval[] {
    ended.removed = true;
    const wanted = !this.closed && this.spares.length + this.making.size < this.wanted;
    const file = wanted ? ended.spareFile : undefined;
    const spare = file && this.create();
    if (file && spare?.journal.openWith(file)) {
      this.options.usage.add(-file.size);
      this.spares.push(spare);
      return [];
    }
    return ended.remove(this.options.usage);
  }

  /** Closes the spares, because their descriptors are needed. False if there were none. */
  shed(): boolean {
    this.wanted = 1;
    const shed = this.spares.splice(0);
    for (const { journal } of shed) journal.remove();
    return shed.length > 0;
  }

  /** Resolves when none is left. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.allSettled(this.making);
    for (const { journal } of this.spares.splice(0)) journal.remove();
  }

  private async make(): Promise<void> {
    const spare = this.create();
    try {
      await spare.journal.openAsync();
      this.options.prepared?.(spare.serial);
    } catch {
      // The next start creates its own, and reports the error.
      return;
    }
    this.spares.push(spare);
  }

  private create(): Spare {
    const { disk, folder, usage, limits, clock, pool } = this.options;
    const serial = randomId();
    const place = { disk, folder, id: serial, usage };
    return { serial, journal: new Journal({ place, limits, clock, pool }) };
  }
}

function removalError(error: unknown): HoldfastError {
  const reason = error instanceof Error ? error.message : String(error);
  const problem = `The process is forgotten, but a file of its output is not removed yet: ${reason}`;
  return new HoldfastError('storage_unavailable', problem, { errno: errnoOf(error) });
}

export function storageError(error: unknown): HoldfastError {
  const errno = errnoOf(error);
  if (errno === 'EMFILE' || errno === 'ENFILE') {
    const problem = 'No file descriptor is free for the journal of a new process.';
    return new HoldfastError('too_many_files', problem, { errno });
  }
  const full = errno === 'ENOSPC' || errno === 'EDQUOT' || errno === 'EFBIG';
  const reason = error instanceof Error ? error.message : String(error);
  return full
    ? new HoldfastError('storage_full', `No space for the journal of a new process: ${reason}`, {
        errno,
      })
    : new HoldfastError(
        'storage_unavailable',
        `The journal of a new process cannot be written: ${reason}`,
        { errno },
      );
}
