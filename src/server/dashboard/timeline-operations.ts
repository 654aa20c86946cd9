// The native operations on the course of a process, and what they do.

import * as v from 'valibot';
import type {
  TerminalRunInfo,
  TimeMark,
  TimePoint,
  Timeline,
} from '../../protocol/dashboard/timeline.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { optional } from '../../protocol/schema/described.ts';
import { count, position } from '../../protocol/schema/fields.ts';
import type { Calls } from '../native/call.ts';
import { shape, text, whole } from '../native/event-shapes.ts';
import { query } from '../native/query.ts';
import { pointAt, runsOf, timelineOf } from './timeline.ts';

const DEFAULT_POINTS = 200;
const place = { seq: whole, offset: whole, atMs: whole };
const point = shape<TimePoint>(v.object(place));
const mark = shape<TimeMark>(v.object({ ...place, kind: text, label: text }));
const run = shape<TerminalRunInfo>(
  v.object({
    run: text,
    command: v.exactOptional(text),
    completion: v.picklist(['marks', 'sentinel', 'unknown']),
    seq: whole,
    startedAtMs: whole,
    endSeq: v.exactOptional(whole),
    exitCode: v.exactOptional(whole),
    durationMs: v.exactOptional(whole),
    outputFrom: v.exactOptional(whole),
    outputTo: v.exactOptional(whole),
  }),
);

export const timelineOperations = {
  timeline: {
    method: 'GET',
    path: '/v1/processes/:id/timeline',
    summary: 'Get the course of a process',
    about:
      'points: events equally far apart, each with its time and the output before it. marks: the newest 500 events that are no output (runs, marks, input, sizes, signals, who has the keyboard).',
    query: query({
      points: optional(
        `Number of points (default ${DEFAULT_POINTS}).`,
        v.pipe(count(1000), v.minValue(2)),
      ),
    }),
    answer: shape<Timeline>(
      v.object({ seq: whole, points: v.array(point), marks: v.array(mark), more: v.boolean() }),
    ),
  },
  pointAt: {
    method: 'GET',
    path: '/v1/processes/:id/at',
    summary: 'Find the event at a moment or at a byte of the output',
    about: 'Give ms (milliseconds since 1970) or offset. The last event that is not behind it.',
    query: query({
      offset: optional('A byte of the output.', position),
      ms: optional('A moment.', position),
    }),
    answer: point,
  },
  listRuns: {
    method: 'GET',
    path: '/v1/terminals/:id/runs',
    summary: 'List the runs of a terminal',
    about:
      'The newest, in the order in which they were typed. Of one without endSeq the end is not known.',
    query: query({}),
    answer: v.object({ runs: v.array(run) }),
  },
} as const;

export function timelineCalls({ host }: { readonly host: HostApi }) {
  return {
    timeline: ({ owner, id, query: { points = DEFAULT_POINTS } }) =>
      timelineOf({ host, owner: owner.sees, id }, points),
    pointAt: async ({ owner, id, query: { offset, ms } }) => {
      if ((offset === undefined) === (ms === undefined))
        throw new HoldfastError('invalid_input', 'Give either "offset" or "ms".');
      return pointAt({ host, owner: owner.sees, id }, { offset, ms });
    },
    listRuns: async ({ owner, id }) => ({ runs: await runsOf({ host, owner: owner.sees, id }) }),
  } satisfies Partial<Calls>;
}
