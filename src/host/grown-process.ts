// A process that a reader has waited for: it makes the page, or tells where it stands, with how the process is at that
// moment.

import type { Page } from '../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../protocol/limits.ts';
import type { Params } from '../protocol/operations.ts';
import { nearPage, type PlacedPage } from '../journal/extent.ts';
import { readPage, type PageRequest, type RawPage, type Readable } from '../journal/reader.ts';
import type { HeldProcess } from './held-process.ts';

/** A page that is told of instead of given. */
export type NearPage = PlacedPage & Omit<Page, keyof RawPage>;

export class GrownProcess {
  private readonly process: HeldProcess;
  private readonly asked: Params<'read'> & { readonly after: number };

  constructor(process: HeldProcess, asked: Params<'read'> & { readonly after: number }) {
    this.process = process;
    this.asked = asked;
  }

  page(): Promise<Page> {
    return this.read(readPage);
  }

  /** For somebody who can read the files of this host: of a large page it is told where it stands. */
  nearPage(): Promise<Page | NearPage> {
    return this.read(nearPage);
  }

  private async read<Found extends PlacedPage | RawPage>(
    read: (journal: Readable, request: PageRequest) => Promise<Found>,
  ): Promise<Found & Omit<Page, keyof RawPage>> {
    const { process, asked } = this;
    const { after, maxBytes = DEFAULT_PAGE_BYTES, offset, paceBytes } = asked;
    // Taken before the page is read: what comes later belongs to the next one.
    const { state, outcome, live } = process;
    const page = await read(process.journal, { after, maxBytes, offset });
    const seq = process.journal.visibleSeq;
    if (paceBytes !== undefined && live) process.pace(page.nextOffset + paceBytes);
    const counted = asked.asides === true || asked.afterCount !== undefined;
    return {
      ...page,
      seq,
      ...(counted && { asides: process.asides.ofPage(after, page.nextAfter, seq) }),
      state,
      ...(outcome && { outcome }),
      end: !live && page.nextAfter >= seq,
    };
  }
}
