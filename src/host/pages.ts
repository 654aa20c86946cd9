// A page of a process: its records, or where they stand, and how the process was when they were read.

import type { Page } from '../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../protocol/limits.ts';
import type { Params } from '../protocol/operations.ts';
import type { PlacedPage } from '../journal/extent.ts';
import type { PageRequest, RawPage, Readable } from '../journal/reader.ts';
import type { HeldProcess } from './held-process.ts';

export type PageAsked = Params<'read'> & { readonly after: number };

/** A page that is told of instead of given. */
export type NearPage = PlacedPage & Omit<Page, keyof RawPage>;

export async function pageOf<Found extends PlacedPage | RawPage>(
  process: HeldProcess,
  asked: PageAsked,
  read: (journal: Readable, request: PageRequest) => Promise<Found>,
): Promise<Found & Omit<Page, keyof RawPage>> {
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
