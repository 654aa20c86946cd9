// An extent: a piece of a segment's file that holds the records of a page. Whoever is near, on the same machine and with
// the same rights, reads it itself; only where it stands has to cross a socket. It is told from memory, without a look at
// the disk, and checked record by record by whoever reads it.

import { errnoOf, type Disk } from '../../base/disk.ts';
import { eventKinds } from '../../protocol/event.ts';
import { checkRecord, readHeader } from '../../protocol/record.ts';
import { locate, readPage, type PageRequest, type RawPage, type Readable } from './reader.ts';
import { readFile, type Mark, type Source } from './segment.ts';

export interface Extent {
  readonly path: string;
  readonly position: number;
  /** Whole records, and possibly something behind the last of them. */
  readonly bytes: number;
  /** The events that these records stand for. */
  readonly firstSeq: number;
  readonly lastSeq: number;
}

export interface PlacedPage {
  readonly extent: Extent;
  readonly nextAfter: number;
  readonly nextOffset: number;
}

/** Less than this is sent: to open a file for it would take longer. */
const LEAST_BYTES = 64 * 1024;

/** Where the next page stands; or the page itself, when it is small or does not begin at a mark of a file. */
export async function extentPage(
  journal: Readable,
  request: PageRequest,
): Promise<RawPage | PlacedPage> {
  const until = lastBeforeMark(journal, request.after);
  return placePage(journal, request) ?? readPage(journal, { ...request, until });
}

function placePage(journal: Readable, request: PageRequest): PlacedPage | undefined {
  const { after, maxBytes } = request;
  const source = sourceOf(journal, after);
  const start = source?.marks.find(({ seq }) => seq === after + 1);
  if (source?.path === undefined || start === undefined) return undefined;
  let end: Mark | undefined;
  for (const border of borders(source)) if (border.pos - start.pos <= maxBytes) end = border;
  if (end === undefined || end.pos - start.pos < LEAST_BYTES) return undefined;
  const { path } = source;
  const [bytes, lastSeq] = [end.pos - start.pos, end.seq - 1];
  const extent = { path, position: start.pos, bytes, firstSeq: start.seq, lastSeq };
  return { extent, nextAfter: lastSeq, nextOffset: end.offset };
}

/** The last event before the next mark: a page that ends there is followed by one that has an extent. */
function lastBeforeMark(journal: Readable, after: number): number | undefined {
  const mark = sourceOf(journal, after)?.marks.find(({ seq }) => seq > after + 1);
  return mark && mark.seq - 1;
}

function sourceOf(journal: Readable, after: number): Source | undefined {
  return locate(journal.sources(), ({ endSeq }) => endSeq > after)?.source;
}

/** Ascending. */
function borders({ marks, endSeq, endOffset, size }: Source): readonly Mark[] {
  return [...marks, { seq: endSeq + 1, offset: endOffset, pos: size }];
}

/** The records of an extent, in `into`; undefined when they are not there, or not as they were written. */
export async function readExtent(
  disk: Disk,
  extent: Extent,
  into: Buffer,
  fresh = false,
): Promise<Buffer | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(disk, extent, into.subarray(0, extent.bytes), fresh);
  } catch (error) {
    // Dropped meanwhile, on a disk that fails, or in a place that only looks the same: who told of it can say more.
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
  let at = 0;
  for (let seq = extent.firstSeq; seq <= extent.lastSeq;) {
    const check = checkRecord(bytes, at);
    if (check.kind !== 'good') return undefined;
    const header = readHeader(bytes, at);
    // A gap carries the number of the last event that it stands for.
    if (header.seq !== seq && !(header.kind === eventKinds.gap && header.seq > seq))
      return undefined;
    seq = header.seq + 1;
    at += check.bytes;
  }
  return bytes.subarray(0, at);
}
