// Second half of `read`: makes the page, or names its extent in the file, with the state of the process at that
// moment.

import type { Page } from '../../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../../protocol/limits.ts';
import type { Params } from '../../protocol/operations.ts';
import { extentPage, type PlacedPage } from '../../journal/read/extent.ts';
import {
  readPage,
  type PageRequest,
  type RawPage,
  type Readable,
} from '../../journal/read/reader.ts';
import type { HeldProcess } from './held-process.ts';

const SMALL_BYTES = 16 * 1024;

/** A page that is told of instead of given. */
export type ExtentPage = PlacedPage & Omit<Page, keyof RawPage>;

export class PageSource {
  private readonly process: HeldProcess;
  private readonly asked: Params<'read'> & { readonly after: number };

  constructor(process: HeldProcess, asked: Params<'read'> & { readonly after: number }) {
    this.process = process;
    this.asked = asked;
  }

  /** Whatever page is asked for, it is no large answer. */
  get isSmall(): boolean {
    const { bytesOnDisk, visibleOffset } = this.process.journal;
    return Math.max(bytesOnDisk, visibleOffset) < SMALL_BYTES;
  }

  page(): Promise<Page> {
    return this.read(readPage);
  }

  /** For somebody who can read the files of this host: of a large page it is told where it stands. */
  extentPage(): Promise<Page | ExtentPage> {
    return this.read(extentPage);
  }

  private async read<Found extends PlacedPage | RawPage>(
    read: (journal: Readable, request: PageRequest) => Promise<Found>,
  ): Promise<Found & Omit<Page, keyof RawPage>> {
    const { process, asked } = this;
    const { after, maxBytes = DEFAULT_PAGE_BYTES, offset, paceBytes, reader } = asked;
    // Taken before the page is read: what comes later belongs to the next one.
    const { state, outcome, live } = process;
    const page = await whileKnown(process, read(process.journal, { after, maxBytes, offset }));
    if ('missed' in page && page.missed && process.forgotten) throw process.notFound();
    const seq = process.journal.visibleSeq;
    if (paceBytes !== undefined && live) {
      const { nextAfter, nextOffset } = page;
      process.pace({ reader, after, nextAfter, limitOffset: nextOffset + paceBytes });
    }
    const counted = asked.uncounted === true || asked.afterCount !== undefined;
    return {
      ...page,
      seq,
      ...(counted && { uncounted: process.uncounted.ofPage(after, page.nextAfter, seq) }),
      state,
      ...(outcome && { outcome }),
      end: !live && page.nextAfter >= seq,
    };
  }
}

/** The files of a process that is forgotten meanwhile go away under whoever reads them. */
export async function whileKnown<T>(process: HeldProcess, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw process.forgotten ? process.notFound() : error;
  }
}

/** For a wait that is not met: it never will be when the process was forgotten meanwhile. */
export function stillKnown(process: HeldProcess): undefined {
  if (process.forgotten) throw process.notFound();
}
