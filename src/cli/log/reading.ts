// Reads the log of a process: from a position, filtered by line, up to now or to its end.

import type { ProcessEvent, Stream } from '../../protocol/event.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';
import { follow, passTo, type FollowOptions, type LogTarget } from './follow.ts';
import type { Line, LineFilter } from './line-filter.ts';
import { lastLines, since, type LogPlace } from './place.ts';

export interface Wanted {
  readonly follow: boolean;
  /** Only the last `tail` of the lines that pass the other filters. */
  readonly tail: number | undefined;
  readonly sinceMs: number | undefined;
  readonly filter: LineFilter | undefined;
}

interface LogRequest {
  readonly caller: Caller;
  readonly process: ProcessInfo;
  readonly wanted: Wanted;
  readonly target: LogTarget;
}

export async function readLog({ caller, process, wanted, target }: LogRequest): Promise<void> {
  const place = await beginning(caller, process, wanted);
  const reading = new Reading(wanted, target, place);
  if (reading.counts) {
    await follow(caller, process, { until: 'now', ...reading.options() });
    await reading.giveKept(!wanted.follow);
  }
  const until = wanted.follow ? 'end' : 'now';
  await follow(caller, process, { until, ...reading.options() });
  await reading.giveKept(true);
}

/** The position to begin at. With a filter, --tail counts lines as they are found. */
async function beginning(
  caller: Caller,
  process: ProcessInfo,
  { tail, sinceMs, filter }: Wanted,
): Promise<LogPlace> {
  const places: LogPlace[] = [{ after: 0, offset: 0, begin: 0 }];
  if (sinceMs !== undefined) places.push(await since(caller, process, sinceMs));
  if (tail !== undefined && !filter) places.push(await lastLines(caller, process, tail));
  return places.reduce((a, b) => (b.begin >= a.begin ? b : a));
}

/** Passes on what is wanted, and remembers how far it has read. */
class Reading {
  private readonly target: LogTarget;
  private readonly pass: (event: ProcessEvent) => Promise<void>;
  private readonly filter: LineFilter | undefined;
  private readonly begin: number;
  /** Lines held back until it is known which are the last. */
  private counting: number | undefined;
  private kept: Line[] = [];
  private at: { after: number; offset: number };

  constructor({ filter, tail }: Wanted, target: LogTarget, place: LogPlace) {
    this.target = target;
    this.pass = passTo(target).event;
    this.filter = filter;
    this.begin = place.begin;
    this.at = { after: place.after, offset: place.offset };
    this.counting = filter ? tail : undefined;
  }

  get counts(): boolean {
    return this.counting !== undefined;
  }

  options(): Pick<FollowOptions, 'after' | 'offset' | 'event' | 'missed'> {
    return {
      ...this.at,
      missed: passTo(this.target).missed,
      event: (event) => this.event(event),
    };
  }

  /** Passes on the lines held back; later ones pass as they come. At the end an unfinished line counts too. */
  async giveKept(atEnd: boolean): Promise<void> {
    if (atEnd) await this.take(this.filter?.end() ?? []);
    const { kept, counting = 0 } = this;
    this.kept = [];
    this.counting = undefined;
    if (counting > 0) await this.take(kept.slice(-counting));
  }

  private async event(event: ProcessEvent): Promise<void> {
    const size = event.kind === 'output' ? event.data.length : 0;
    this.at = { after: event.seq, offset: event.offset + size };
    if (event.kind !== 'output') return this.pass(event);
    const data = event.data.subarray(Math.max(0, this.begin - event.offset));
    if (data.length === 0) return;
    if (this.filter) await this.take(this.filter.push(event.stream, data));
    else await this.pass({ ...event, data });
  }

  private async take(lines: readonly Line[]): Promise<void> {
    const { counting } = this;
    if (counting === undefined) {
      for (const { stream, bytes } of lines) await this.target.output(stream, bytes);
      return;
    }
    this.kept.push(...lines);
    if (this.kept.length > 2 * counting)
      this.kept = counting === 0 ? [] : this.kept.slice(-counting);
  }
}

const MOST_BYTES = 1024 * 1024;

/** Collects the newest 1 MiB of a log. */
export class Newest implements LogTarget {
  private readonly chunks: Buffer[] = [];
  private readonly notes: string[] = [];
  private bytes = 0;
  private omittedBytes = 0;

  async output(_stream: Stream, bytes: Buffer): Promise<void> {
    this.chunks.push(Buffer.from(bytes));
    this.bytes += bytes.length;
    for (
      let [first] = this.chunks;
      first && this.bytes - first.length >= MOST_BYTES;
      [first] = this.chunks
    ) {
      this.chunks.shift();
      this.bytes -= first.length;
      this.omittedBytes += first.length;
    }
  }

  async note(text: string): Promise<void> {
    this.notes.push(text);
  }

  content(): { text: string; omittedBytes: number; notes: readonly string[] } {
    const { omittedBytes, notes } = this;
    return { text: Buffer.concat(this.chunks).toString('utf8'), omittedBytes, notes };
  }
}
