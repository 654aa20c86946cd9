// A position in the output of a process: the event to read from, and the bytes to skip.

import { decodeRecords } from '../../protocol/record.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';

export interface LogPlace {
  /** The event before the first one needed, and the number of output bytes up to it. */
  readonly after: number;
  readonly offset: number;
  /** Output before this byte is skipped. */
  readonly begin: number;
}

export async function lastLines(
  caller: Caller,
  process: ProcessInfo,
  lines: number,
): Promise<LogPlace> {
  const begin = await tailOffset(caller, process, lines);
  const place = await lastEvent(caller, process, (event) => event.offset <= begin);
  return { ...place, begin };
}

export async function since(
  caller: Caller,
  process: ProcessInfo,
  wallMs: number,
): Promise<LogPlace> {
  const early = (event: ProcessEvent): boolean => event.wallMs < wallMs;
  const { after, offset } = await lastEvent(caller, process, early);
  const [event] = await eventsAfter(caller, process, after);
  // The first event read may itself be too early: `lastEvent` finds the last one that is.
  const size = event && early(event) && event.kind === 'output' ? event.data.length : 0;
  return { after, offset, begin: (event?.offset ?? offset) + size };
}

/** Binary search: the position before the last event for which `holds` is true; it is true up to that one. */
async function lastEvent(
  caller: Caller,
  process: ProcessInfo,
  holds: (event: ProcessEvent) => boolean,
): Promise<{ after: number; offset: number }> {
  let [low, high] = [0, process.seq];
  let offset = 0;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    const [event] = await eventsAfter(caller, process, middle);
    if (event !== undefined && holds(event)) [low, offset] = [middle, event.offset];
    else high = middle;
  }
  return { after: low, offset };
}

async function eventsAfter(
  caller: Caller,
  { id, owner }: ProcessInfo,
  after: number,
): Promise<ProcessEvent[]> {
  const page = await caller.ask((host) => host.read(owner, { id, after, maxBytes: 1 }));
  return [...decodeRecords(page.records)];
}

const CHUNK_BYTES = 64 * 1024;
const LF = 10;

/** The offset at which the last `lines` lines begin, found by reading backwards. */
async function tailOffset(caller: Caller, process: ProcessInfo, lines: number): Promise<number> {
  const { total } = process.bytes;
  if (lines === 0) return total;
  let breaks = 0;
  for (let end = total; end > 0;) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const params = { id: process.id, offset: start, maxBytes: end - start };
    const range = await caller.ask((host) => host.range(process.owner, params));
    const bytes = range.bytes.subarray(0, Math.max(0, end - range.offset));
    for (
      let at = bytes.lastIndexOf(LF);
      at >= 0;
      at = at === 0 ? -1 : bytes.lastIndexOf(LF, at - 1)
    ) {
      // A line break at the very end closes the last line; it does not begin another.
      if (range.offset + at + 1 < total) breaks += 1;
      if (breaks === lines) return range.offset + at + 1;
    }
    end = start;
  }
  return 0;
}
