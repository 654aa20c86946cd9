// Reads output for a model: fetches no more than the text needs, and moves the caller's cursor.

import { cutEnd, cutStart } from '../../base/bytes/utf8.ts';
import type { Api } from '../../client/api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { modelText, type ModelText, type Stretch } from './model-text.ts';
import type { ToolContext } from '../tool-context.ts';

/** Bytes fetched of each end per byte of text: progress bars and colours shrink a lot. */
const FETCH_FACTOR = 16;
const MIN_FETCH = 64 * 1024;
const MAX_FETCH = 512 * 1024;

export interface Reading extends ModelText {
  readonly from: number;
  readonly to: number;
  /** The last bytes of the output, if they were fetched. */
  readonly ending?: Buffer;
}

export interface ReadingPart {
  readonly from?: number;
  readonly to?: number;
  readonly maxBytes?: number | undefined;
  /** Does not move the cursor. */
  readonly peek?: boolean;
}

/** A process and the size of its output. */
interface ProcessOutput {
  readonly id: string;
  readonly bytes: Pick<ProcessInfo['bytes'], 'total'>;
}

export async function readOutput(
  context: ToolContext,
  { id, bytes: { total } }: ProcessOutput,
  { from = 0, to = total, maxBytes, peek = false }: ReadingPart = {},
): Promise<Reading> {
  const most = Math.min(maxBytes ?? Infinity, context.settings.maxOutputBytes);
  const end = Math.min(to, total);
  const start = Math.min(from, end);
  const window = Math.min(Math.max(MIN_FETCH, most * FETCH_FACTOR), MAX_FETCH);
  const stretches = await fetchStretches(context.api, { id, from: start, to: end, window });
  const text = modelText({
    from: start,
    to: end,
    stretches,
    maxBytes: most,
    fetchCall: (offset) => fetchCall(id, offset),
  });
  if (!peek) context.cursor.markRead(id, end);
  const last = stretches.at(-1);
  const ending = last && last.offset + last.bytes.length === total ? last.bytes : undefined;
  return { ...text, from: start, to: end, ...(ending && { ending }) };
}

/** The call by which a model gets the omitted part. */
export function fetchCall(id: string, offset: number): string {
  return `process_output {"process_id":"${id}","offset":${offset}}`;
}

interface Part {
  readonly id: string;
  readonly from: number;
  readonly to: number;
}

/** Everything, or both ends; if there are holes, the first and the last stretch. */
async function fetchStretches(api: Api, part: Part & { window: number }): Promise<Stretch[]> {
  const { id, from, to, window } = part;
  if (from === to) return [];
  if (to - from <= 2 * window) {
    return bothEnds(await fetchPart(api, { id, from, to }), from, to);
  }
  const [head] = await fetchPart(api, { id, from, to: from + window });
  const tail = (await fetchPart(api, { id, from: to - window, to })).at(-1);
  const ends = [...(head ? [trimmedEnd(head)] : []), ...(tail ? [trimmedStart(tail)] : [])];
  return bothEnds(ends, from, to);
}

/** An end that is no longer stored becomes an empty stretch, so that the missing bytes are counted. */
function bothEnds(found: readonly Stretch[], from: number, to: number): Stretch[] {
  const nothing = (offset: number): Stretch => ({ offset, bytes: Buffer.alloc(0) });
  const [first = nothing(from), last = nothing(to)] = [found[0], found.at(-1)];
  if (first.offset === from && from + first.bytes.length === to) return [first];
  return [
    first.offset === from ? first : nothing(from),
    last.offset + last.bytes.length === to && last !== first ? last : lateEnd(last, from, to),
  ];
}

function lateEnd(last: Stretch, from: number, to: number): Stretch {
  const reaches = last.offset > from && last.offset + last.bytes.length === to;
  return reaches ? last : { offset: to, bytes: Buffer.alloc(0) };
}

/** The stretches that are still stored, in order. */
async function fetchPart(api: Api, { id, from, to }: Part): Promise<Stretch[]> {
  const found: { offset: number; parts: Buffer[] }[] = [];
  for (let at = from; at < to;) {
    const { offset, bytes } = await api.range({ id, offset: at, maxBytes: to - at });
    const fits = bytes.subarray(0, Math.max(0, to - offset));
    if (fits.length === 0) break;
    const last = found.at(-1);
    if (last && offset === at) last.parts.push(fits);
    else found.push({ offset, parts: [fits] });
    at = offset + fits.length;
  }
  return found.map(({ offset, parts }) => ({ offset, bytes: Buffer.concat(parts) }));
}

function trimmedEnd({ offset, bytes }: Stretch): Stretch {
  return { offset, bytes: bytes.subarray(0, cutEnd(bytes)) };
}

function trimmedStart({ offset, bytes }: Stretch): Stretch {
  const start = cutStart(bytes);
  return { offset: offset + start, bytes: bytes.subarray(start) };
}
