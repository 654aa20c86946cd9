// Reads a page of a process's events, or the extent of the page in its file, with the state of the process at that moment.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Owner, Page, Results } from '../../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../../protocol/limits.ts';
import type { Params } from '../../protocol/operations.ts';
import type { PlacedPage } from '../../journal/read/extent.ts';
import {
  readRange,
  type PageRequest,
  type RawPage,
  type Readable,
} from '../../journal/read/reader.ts';
import type { ProcessLifecycle } from '../lifecycle.ts';
import type { ConditionTools } from '../wait/conditions.ts';
import type { ParkedWaits } from '../wait/parked-waits.ts';
import { waitFor } from '../wait/wait-operation.ts';
import type { HeldProcess } from './held-process.ts';

const SMALL_BYTES = 16 * 1024;

/** A page whose records the caller reads from the file itself. */
export type ExtentPage = PlacedPage & Omit<Page, keyof RawPage>;

/** Any page of such a journal is a small answer. */
function isSmall({ journal }: HeldProcess): boolean {
  return Math.max(journal.bytesOnDisk, journal.visibleOffset) < SMALL_BYTES;
}

/** Makes a large answer when its caller can take it; a caller behind a socket may have to wait for that. */
export type MakeLarge = <T>(make: () => Promise<T>) => Promise<T>;

export interface ReadDeps {
  readonly lifecycle: Pick<ProcessLifecycle, 'startsUnderWay' | 'registry'>;
  readonly parked: ParkedWaits;
  readonly conditionTools: ConditionTools;
}

interface ReadOptions<Found> {
  readonly read: (journal: Readable, request: PageRequest) => Promise<Found>;
  readonly signal: CancelSignal | undefined;
  readonly makeLarge: MakeLarge;
}

/** Waits for new events if the caller asked for that, then reads the page. */
export async function readEvents<Found extends PlacedPage | RawPage>(
  { lifecycle, parked, conditionTools }: ReadDeps,
  owner: Owner,
  params: Params<'read'>,
  { read, signal, makeLarge }: ReadOptions<Found>,
): Promise<Found & Omit<Page, keyof RawPage>> {
  const { id, waitMs, afterCount } = params;
  if (waitMs !== undefined) await lifecycle.startsUnderWay(owner, [id]);
  const process = lifecycle.registry.find(owner, id);
  const counted = params.uncounted === true || afterCount !== undefined;
  const recalling = counted ? process.uncounted.recall(process.journal) : undefined;
  if (recalling) await recalling;
  const after =
    afterCount === undefined ? (params.after ?? 0) : process.uncounted.seqOf(afterCount);
  if (waitMs !== undefined && process.live && process.journal.visibleSeq <= after) {
    const waits = [{ process, for: [{ kind: 'growth', after } as const] }];
    await parked.park(owner, () =>
      waitFor({ waits, mode: 'first', timeoutMs: waitMs, signal }, conditionTools),
    );
  }
  const make = () => readNow(process, { ...params, after, counted }, read);
  return isSmall(process) ? make() : makeLarge(make);
}

async function readNow<Found extends PlacedPage | RawPage>(
  process: HeldProcess,
  params: Params<'read'> & { readonly after: number; readonly counted: boolean },
  read: ReadOptions<Found>['read'],
): Promise<Found & Omit<Page, keyof RawPage>> {
  const { uncountedTo } = params;
  const { after, counted, maxBytes = DEFAULT_PAGE_BYTES, offset, paceBytes, reader } = params;
  // Taken before the page is read: later events belong to the next page.
  const { state, outcome, live } = process;
  const page = await whileKnown(process, read(process.journal, { after, maxBytes, offset }));
  if ('missed' in page && page.missed && process.forgotten) throw process.notFound();
  const seq = process.journal.visibleSeq;
  if (paceBytes !== undefined && live) {
    const { nextAfter, nextOffset } = page;
    process.pace({ reader, after, nextAfter, limitOffset: nextOffset + paceBytes });
  }
  return {
    ...page,
    seq,
    ...(counted && {
      uncounted: process.uncounted.ofPage(after, uncountedTo ?? page.nextAfter, seq),
    }),
    state,
    ...(outcome && { outcome }),
    end: !live && page.nextAfter >= seq,
  };
}

/** Rejects with `not_found` if the process is removed during the read, because its files are then deleted. */
export async function whileKnown<T>(process: HeldProcess, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw process.forgotten ? process.notFound() : error;
  }
}

/** Throws `not_found` if the process was removed: a wait for it can never be met. */
export function stillKnown(process: HeldProcess): undefined {
  if (process.forgotten) throw process.notFound();
}

/** Output bytes from an offset on. */
export async function readBytes(
  process: HeldProcess,
  { offset, maxBytes = DEFAULT_PAGE_BYTES }: Params<'range'>,
): Promise<Results['range']> {
  const { live } = process;
  const totalBytes = process.journal.visibleOffset;
  const found = await whileKnown(process, readRange(process.journal, offset, maxBytes));
  const part = found ?? { offset, bytes: Buffer.alloc(0), missedBytes: 0 };
  return { ...part, totalBytes, end: !live && part.offset + part.bytes.length >= totalBytes };
}
