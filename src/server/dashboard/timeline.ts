// The course of a process, from a few reads of its journal: single events found by their numbers, however long the journal
// is. Times and offsets grow with the numbers, so a moment or a byte is found by halving.

import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import type { HostApi, Owner } from '../../protocol/host-api.ts';
import type {
  TerminalRunInfo,
  TimeMark,
  TimePoint,
  Timeline,
} from '../../protocol/dashboard/timeline.ts';
import { decodeRecords } from '../../protocol/record.ts';
import type { RunFinishedNote, RunStartedNote } from '../../protocol/run.ts';

interface Target {
  readonly host: HostApi;
  readonly owner: Owner;
  readonly id: string;
}

/** Of a timeline and of the runs of a terminal. */
const MOST_MARKS = 500;
const AT_ONCE = 8;
const MOST_LABEL = 200;

export async function timelineOf(target: Target, count: number): Promise<Timeline> {
  const { seq } = await target.host.get(target.owner, { id: target.id });
  const step = Math.max(1, (seq - 1) / Math.max(1, count - 1));
  const numbers = new Set(
    Array.from({ length: Math.min(count, seq) }, (_each, at) => Math.round(1 + at * step)),
  );
  const points = await eventsAt(target, [...numbers]);
  const { events, more } = await otherEvents(target, seq);
  return {
    seq,
    points: distinct(points.map(pointOf)),
    marks: events.map((event) => ({ ...pointOf(event), ...describe(event) })),
    more,
  };
}

/** The last event at or before a moment, or the event that printed a byte. */
export async function pointAt(
  target: Target,
  wanted: { readonly offset?: number | undefined; readonly ms?: number | undefined },
): Promise<TimePoint> {
  const { offset, ms } = wanted;
  const isBehind = (point: TimePoint): boolean =>
    offset === undefined ? point.atMs > (ms ?? Infinity) : point.offset > offset;
  let [low, high] = [1, (await target.host.get(target.owner, { id: target.id })).seq];
  let found: TimePoint | undefined;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const event = await eventAt(target, middle);
    // Events before a gap that were dropped: what is asked for is the first one behind it.
    if (!event || isBehind(pointOf(event))) high = middle - 1;
    else {
      found = pointOf(event);
      low = Math.max(middle, event.seq) + 1;
    }
  }
  const first = found ?? (await firstPoint(target));
  if (first) return first;
  throw new HoldfastError('not_found', 'No event of this process is stored.');
}

/** The newest runs, in the order in which they were typed. */
export async function runsOf(target: Target): Promise<TerminalRunInfo[]> {
  const { seq } = await target.host.get(target.owner, { id: target.id });
  const { events } = await otherEvents(target, seq);
  const runs = new Map<number, TerminalRunInfo>();
  for (const event of events) {
    if (event.kind !== 'note') continue;
    const note = event.body as unknown as RunStartedNote | RunFinishedNote;
    if (note.note === 'run') {
      const { run, command, completion } = note;
      const begun = { run, completion, seq: event.seq, startedAtMs: event.wallMs };
      runs.set(event.seq, command === undefined ? begun : { ...begun, command });
    } else if (note.note === 'runEnd') {
      const begun = runs.get(note.startSeq);
      if (begun) runs.set(note.startSeq, { ...begun, ...endOf(note, event.seq) });
    }
  }
  return [...runs.values()];
}

function endOf(
  { exitCode, durationMs, outputFrom, outputTo }: RunFinishedNote,
  endSeq: number,
): Partial<TerminalRunInfo> {
  const ended = { endSeq, durationMs, outputFrom, outputTo };
  return exitCode === undefined ? ended : { ...ended, exitCode };
}

/** Events that are neither output nor an exit, the newest of them. */
async function otherEvents(
  target: Target,
  seq: number,
): Promise<{ readonly events: readonly ProcessEvent[]; readonly more: boolean }> {
  const { host, owner, id } = target;
  const asked = { id, after: 0, maxBytes: 1, uncounted: true, uncountedTo: seq };
  const { uncounted } = await host.read(owner, asked);
  const numbers = (uncounted?.seqs ?? []).filter((number) => number > 1);
  const events = await eventsAt(target, numbers.slice(-MOST_MARKS));
  return { events, more: numbers.length > MOST_MARKS };
}

async function eventsAt(target: Target, numbers: readonly number[]): Promise<ProcessEvent[]> {
  const found: ProcessEvent[] = [];
  for (let at = 0; at < numbers.length; at += AT_ONCE) {
    const some = numbers.slice(at, at + AT_ONCE);
    const events = await Promise.all(some.map((number) => eventAt(target, number)));
    for (const event of events) if (event) found.push(event);
  }
  return found;
}

/** The event with this number, or the first one behind it that is stored. */
async function eventAt(
  { host, owner, id }: Target,
  number: number,
): Promise<ProcessEvent | undefined> {
  const { records } = await host.read(owner, { id, after: number - 1, maxBytes: 1 });
  for (const event of decodeRecords(records)) return event;
  return undefined;
}

async function firstPoint(target: Target): Promise<TimePoint | undefined> {
  const event = await eventAt(target, 1);
  return event && pointOf(event);
}

function pointOf({ seq, offset, wallMs }: ProcessEvent): TimePoint {
  return { seq, offset, atMs: wallMs };
}

/** Several numbers may have led to the same event behind a gap. */
function distinct(points: readonly TimePoint[]): TimePoint[] {
  return points.filter(({ seq }, index) => seq !== points[index - 1]?.seq);
}

function describe(event: ProcessEvent): Pick<TimeMark, 'kind' | 'label'> {
  const body = 'body' in event ? (event.body as unknown as Record<string, unknown>) : {};
  const text = (name: string): string => {
    const value = body[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  };
  const kind = event.kind === 'note' ? text('note') : event.kind;
  const labels: Readonly<Record<string, string>> = {
    run: text('command'),
    runEnd: text('exitCode'),
    mark: text('label'),
    keyboard: `${text('action')} by ${text('holder')}`,
    resize: `${text('cols')} × ${text('rows')}`,
    signal: `${text('signal')} by ${text('by')}`,
    input: `${text('bytes')} bytes`,
  };
  return { kind, label: (labels[kind] ?? '').slice(0, MOST_LABEL) };
}
