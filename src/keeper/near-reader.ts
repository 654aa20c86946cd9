// Reads for a link the pages that its keeper only tells of: the keeper says where they stand, and the file is read here.
// Whatever goes wrong with that, the keeper is asked for the page itself.

import { systemDisk, type Disk } from '../base/disk.ts';
import { readExtent } from '../journal/extent.ts';
import type { NearPage } from '../host/host.ts';
import type { Page } from '../protocol/host-api.ts';

/** After so many in a row that could not be read, the keeper's files are taken to be out of reach. */
const MISSES = 3;

export class NearReader {
  private readonly disk: Disk;
  private misses = 0;

  constructor(disk: Disk = systemDisk) {
    this.disk = disk;
  }

  /** `ask` gets a page from the keeper; told `near`, it may get only its place. */
  async page(ask: (near: boolean) => Promise<Page | NearPage>): Promise<Page> {
    const found = await ask(this.misses < MISSES);
    if (!('extent' in found)) return found;
    const { extent, ...page } = found;
    const records = await readExtent(this.disk, extent);
    this.misses = records ? 0 : this.misses + 1;
    if (records) return { ...page, records };
    return (await ask(false)) as Page;
  }
}
