// Reads for a link the pages that its keeper only tells of: the keeper says where they stand, and the file is read here.
// Whatever goes wrong with that, the keeper is asked for the page itself.

import { BufferPool } from '../base/bytes/buffer-pool.ts';
import { systemDisk, type Disk } from '../base/disk.ts';
import { once } from '../base/once.ts';
import { readExtent } from '../journal/read/extent.ts';
import type { ExtentPage } from '../host/process/read-events.ts';
import type { Page } from '../protocol/host-api.ts';

/** After so many in a row that could not be read, the keeper's files are taken to be out of reach. */
const MISSES = 3;
/** Of a process that runs: a reader so close behind it reads what was written a moment ago. At most 32 MiB. */
const FRESH_EVENTS = 512;
/** As large as the pages of those who give them back. */
const POOLED_BYTES = 1024 * 1024;
const POOLED = 4;

export class ExtentReader {
  private readonly disk: Disk;
  private readonly pool = new BufferPool(POOLED_BYTES, POOLED);
  private misses = 0;

  constructor(disk: Disk = systemDisk) {
    this.disk = disk;
  }

  /** `ask` gets a page from the keeper; told `near`, it may get only its place. */
  async page(ask: (near: boolean) => Promise<Page | ExtentPage>): Promise<Page> {
    const found = await ask(this.misses < MISSES);
    if (!('extent' in found)) return found;
    const { extent, ...page } = found;
    const { pool } = this;
    const buffer = this.bufferFor(extent.bytes);
    const fresh = page.state === 'running' && page.seq - page.nextAfter <= FRESH_EVENTS;
    const records = await readExtent(this.disk, extent, buffer, fresh);
    this.misses = records ? 0 : this.misses + 1;
    // Given back twice, the same memory would serve two.
    if (records) return { ...page, records, release: once(() => pool.give(buffer)) };
    pool.give(buffer);
    return (await ask(false)) as Page;
  }

  /** Never much larger than the page: most readers keep what they are given. */
  private bufferFor(bytes: number): Buffer {
    const { pool } = this;
    return bytes > pool.size / 2 && bytes <= pool.size
      ? pool.take()
      : Buffer.allocUnsafeSlow(bytes);
  }
}
