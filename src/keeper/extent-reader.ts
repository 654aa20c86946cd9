// Reads the pages that the keeper answers with an extent from the file. If that fails, asks the keeper for the page itself.

import { BufferPool } from '../base/bytes/buffer-pool.ts';
import { systemDisk, type Disk } from '../base/disk.ts';
import { once } from '../base/once.ts';
import { readExtent } from '../journal/read/extent.ts';
import type { ExtentPage } from '../host/process/read-events.ts';
import type { Page } from '../protocol/host-api.ts';

/** After this many failures in a row no more extents are requested. */
const MAX_MISSES = 3;
/** A reader this close to the newest event of a running process reads from the page cache. At most 32 MiB. */
const FRESH_EVENTS = 512;
/** The size of pages whose consumers release them. */
const POOLED_BYTES = 1024 * 1024;
const POOLED = 4;

export class ExtentReader {
  private readonly disk: Disk;
  private readonly pool = new BufferPool(POOLED_BYTES, POOLED);
  private misses = 0;

  constructor(disk: Disk = systemDisk) {
    this.disk = disk;
  }

  /** `ask` requests a page from the keeper; with `near` the answer may be an extent. */
  async readPage(ask: (near: boolean) => Promise<Page | ExtentPage>): Promise<Page> {
    const found = await ask(this.misses < MAX_MISSES);
    if (!('extent' in found)) return found;
    const { extent, ...page } = found;
    const { pool } = this;
    const buffer = this.bufferFor(extent.bytes);
    const fresh = page.state === 'running' && page.seq - page.nextAfter <= FRESH_EVENTS;
    const records = await readExtent(this.disk, extent, buffer, fresh);
    this.misses = records ? 0 : this.misses + 1;
    // `once`: a buffer that is released twice would be used for two pages.
    if (records) return { ...page, records, release: once(() => pool.give(buffer)) };
    pool.give(buffer);
    return (await ask(false)) as Page;
  }

  /** Not much larger than the page, because most consumers never release it. */
  private bufferFor(bytes: number): Buffer {
    const { pool } = this;
    return bytes > pool.size / 2 && bytes <= pool.size
      ? pool.take()
      : Buffer.allocUnsafeSlow(bytes);
  }
}
