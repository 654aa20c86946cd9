// An extent: the part of a segment's file that holds the records of a page. A client on the same machine, with the same
// rights, reads it itself; only its position crosses the socket. The keeper knows it from memory, without a read. The
// client checks every record.

import { errnoOf, type Disk } from '../../base/disk.ts';
import { eventKinds } from '../../protocol/event.ts';
import { checkRecord, readHeader } from '../../protocol/record.ts';
import { locate, readPage, type PageRequest, type RawPage, type Readable } from './reader.ts';
import { readFile, type IndexPoint, type Source } from './segment.ts';

export interface Extent {
  readonly path: string;
  readonly position: number;
  /** Whole records; other bytes may follow them. */
  readonly bytes: number;
  /** The range of events in these records. */
  readonly firstSeq: number;
  readonly lastSeq: number;
}

export interface PlacedPage {
  readonly extent: Extent;
  readonly nextAfter: number;
  readonly nextOffset: number;
}

/** A smaller page is sent: opening a file would take longer. */
const LEAST_BYTES = 64 * 1024;

/** The extent of the next page; or the page itself, if it is small or does not begin at an index point. */
export async function extentPage(
  journal: Readable,
  request: PageRequest,
): Promise<RawPage | PlacedPage> {
  const until = lastBeforeIndexPoint(journal, request.after);
  return placePage(journal, request) ?? readPage(journal, { ...request, until });
}

function placePage(journal: Readable, request: PageRequest): PlacedPage | undefined {
  const { after, maxBytes } = request;
  const source = sourceOf(journal, after);
  const start = source?.index.find(({ seq }) => seq === after + 1);
  if (source?.path === undefined || start === undefined) return undefined;
  let end: IndexPoint | undefined;
  for (const border of borders(source)) if (border.pos - start.pos <= maxBytes) end = border;
  if (end === undefined || end.pos - start.pos < LEAST_BYTES) return undefined;
  const { path } = source;
  const [bytes, lastSeq] = [end.pos - start.pos, end.seq - 1];
  const extent = { path, position: start.pos, bytes, firstSeq: start.seq, lastSeq };
  return { extent, nextAfter: lastSeq, nextOffset: end.offset };
}

/** The last event before the next index point: the page after that one has an extent. */
function lastBeforeIndexPoint(journal: Readable, after: number): number | undefined {
  const point = sourceOf(journal, after)?.index.find(({ seq }) => seq > after + 1);
  return point && point.seq - 1;
}

function sourceOf(journal: Readable, after: number): Source | undefined {
  return locate(journal.sources(), ({ endSeq }) => endSeq > after)?.source;
}

/** Where an extent can end, ascending. */
function borders({ index, endSeq, endOffset, size }: Source): readonly IndexPoint[] {
  return [...index, { seq: endSeq + 1, offset: endOffset, pos: size }];
}

/** Reads the records of an extent into `into`; undefined if the file is missing or has changed. */
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
    // The segment was dropped meanwhile, the disk fails, or we see another file system: the keeper sends the page.
    if (errnoOf(error) === undefined) throw error;
    return undefined;
  }
  let at = 0;
  for (let seq = extent.firstSeq; seq <= extent.lastSeq;) {
    const check = checkRecord(bytes, at);
    if (check.kind !== 'good') return undefined;
    const header = readHeader(bytes, at);
    // A gap record has the number of the last event that it stands for.
    if (header.seq !== seq && !(header.kind === eventKinds.gap && header.seq > seq))
      return undefined;
    seq = header.seq + 1;
    at += check.bytes;
  }
  return bytes.subarray(0, at);
}
