// `holdfast logs`

import { decodeRecords } from '../../protocol/record.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';
import type { Answer, Command } from '../command.ts';
import { follow, printTo } from '../follow.ts';

export const command: Command = {
  name: 'logs',
  usage: 'ID [-f] [--tail N] [--raw]',
  summary: 'Print what a process has printed.',
  options: {
    follow: { type: 'boolean', short: 'f', about: 'go on until nothing can follow' },
    tail: { type: 'string', short: 'n', value: 'N', about: 'only the last N lines' },
    raw: { type: 'boolean', about: 'control characters go to a terminal as they are' },
  },
  notes: [
    'stdout goes to stdout and stderr to stderr. Piped, every byte is exact.',
    'With --json: the beginning and the end as text, at most 32 KiB.',
  ],
  async run({ words, caller, out }): Promise<Answer> {
    const [id = ''] = words.exactly(1, 1);
    const tail = words.count('tail');
    if (out.json && (words.flag('follow') || tail !== undefined)) {
      throw words.wrong(
        '--json gives the beginning and the end at once and goes with neither -f nor --tail',
      );
    }
    const process = await caller.find(id);
    if (out.json) {
      return { result: await caller.ask((host) => host.text(process.owner, { id: process.id })) };
    }
    const from = tail === undefined ? undefined : await lastLines(caller, process, tail);
    const until = words.flag('follow') ? 'end' : 'now';
    const print = printTo(out);
    await follow(caller, process, {
      until,
      ...(from && { after: from.after, offset: from.offset }),
      missed: print.missed,
      async event(event) {
        if (from === undefined || event.kind !== 'output') return print.event(event);
        const skip = Math.max(0, from.begin - event.offset);
        return print.event({ ...event, data: event.data.subarray(skip) });
      },
    });
    return { result: undefined };
  },
};

interface TailStart {
  /** The output byte at which the lines begin, and the event before the one that holds it. */
  readonly begin: number;
  readonly after: number;
  readonly offset: number;
}

async function lastLines(caller: Caller, process: ProcessInfo, lines: number): Promise<TailStart> {
  const begin = await tailOffset(caller, process, lines);
  // Whole events are read: the last one that begins at or before the byte wanted.
  let [low, high] = [0, process.seq];
  let offset = 0;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    const params = { id: process.id, after: middle, maxBytes: 1 };
    const page = await caller.ask((host) => host.read(process.owner, params));
    const [event] = decodeRecords(page.records);
    if (event !== undefined && event.offset <= begin) [low, offset] = [middle, event.offset];
    else high = middle;
  }
  return { begin, after: low, offset };
}

const CHUNK_BYTES = 64 * 1024;
const LF = 10;

/** Where the last so many lines begin, looking from the end. */
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
