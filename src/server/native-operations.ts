// The native operations: one row per method and path, with what it takes and what it answers. The rows check what comes
// in, and the same rows are what /openapi.json and /docs say. What a row takes is made of the host's own rows.

import * as v from 'valibot';
import { operations } from '../protocol/operations.ts';
import { answers } from './native-shapes.ts';
import { strictly } from './strict-schema.ts';
import { terminalOperations } from './terminals/terminal-operations.ts';

/** The owner may be named in the query as well as in the header, for tools that cannot send one. */
const owner = v.optional(v.string());
const base64 = v.pipe(v.string(), v.base64('must be base64'));

/** Strict: a mistyped name is refused instead of being ignored. */
const query = <Entries extends v.ObjectEntries>(entries: Entries) =>
  v.strictObject({ ...entries, owner });

/** Strict at every depth. */
const body = <Entries extends v.ObjectEntries>(entries: Entries) =>
  strictly(v.strictObject(entries));

const without = <Entries extends v.ObjectEntries>(row: v.ObjectSchema<Entries, undefined>) => {
  const { id: _id, ...rest } = row.entries as Entries & { id?: unknown };
  return rest as Omit<Entries, 'id'>;
};

/** The rest of a read is for dialects that count and hold back by themselves. */
const { after, offset, maxBytes, waitMs } = operations.read.entries;
const pageQuery = { after, offset, maxBytes, waitMs };
const conditions = operations.wait.entries.waits.pipe[0].item.entries.for;
const { timeoutMs } = operations.wait.entries;

export const nativeOperations = {
  start: {
    method: 'POST',
    path: '/v1/processes',
    summary: 'Start a process',
    about:
      'With a key, an equal start attaches to the process that exists and a different one is refused. Limited per token; a refusal says in Retry-After when to come back.',
    query: query({}),
    body: body(operations.start.entries),
    answer: answers.started,
  },
  list: {
    method: 'GET',
    path: '/v1/processes',
    summary: 'List processes',
    about: 'Running ones first, then the newest. The total counts all that match.',
    query: query(operations.list.entries),
    answer: answers.processes,
  },
  get: {
    method: 'GET',
    path: '/v1/processes/:id',
    summary: 'Get one process',
    query: query({}),
    answer: answers.process,
  },
  remove: {
    method: 'DELETE',
    path: '/v1/processes/:id',
    summary: 'Remove a process and its output',
    about: 'One that has not closed is refused, unless force is true: then it is ended first.',
    query: query(without(operations.remove)),
    answer: answers.nothing,
  },
  prune: {
    method: 'POST',
    path: '/v1/prune',
    summary: 'Remove every process that has ended',
    about: 'Only closed or lost ones of which nobody is left alive: nothing is ended by this.',
    query: query({}),
    answer: answers.removed,
  },
  text: {
    method: 'GET',
    path: '/v1/processes/:id/text',
    summary: 'Read the output as text, head and tail',
    query: query({ ...without(operations.text), clean: v.optional(v.boolean()) }),
    answer: answers.text,
  },
  events: {
    method: 'GET',
    path: '/v1/processes/:id/events',
    summary: 'Read a page of events',
    about:
      'Ask next with after=nextAfter and offset=nextOffset. With waitMs the answer waits for something new, or for the end.',
    query: query(pageQuery),
    answer: answers.page,
  },
  bytes: {
    method: 'GET',
    path: '/v1/processes/:id/bytes',
    summary: 'Read the output as raw bytes',
    about:
      'With maxBytes one range; without it everything retained from the offset to what is the end now. Headers: Holdfast-Offset, Holdfast-Total-Bytes, Holdfast-Missed-Bytes; a trailer Holdfast-Skipped-Bytes counts what a stream had to leave out.',
    query: query({
      offset: v.optional(operations.range.entries.offset),
      maxBytes: operations.range.entries.maxBytes,
    }),
    media: 'application/octet-stream',
  },
  follow: {
    method: 'GET',
    path: '/v1/processes/:id/follow',
    summary: 'Follow the events of a process',
    about:
      'Server-sent events: one per event of the journal, its sequence number as id, its kind as event name, the same JSON as in a page as data. Goes on after Last-Event-ID, or after the query parameter. "missed" tells what can no longer be given; "end" is the last one; "problem" carries an error.',
    query: query({ after: operations.read.entries.after }),
    media: 'text/event-stream',
  },
  waitOne: {
    method: 'POST',
    path: '/v1/processes/:id/wait',
    summary: 'Wait for a process',
    about:
      'Answers when the first condition is met, when none can be met any more, or when timeoutMs is over. Never ends anything. Closing the connection gives up the wait.',
    query: query({}),
    body: body({ for: conditions, timeoutMs }),
    answer: answers.waited,
  },
  wait: {
    method: 'POST',
    path: '/v1/wait',
    summary: 'Wait for several processes',
    query: query({}),
    body: body(operations.wait.entries),
    answer: answers.waited,
  },
  stdin: {
    method: 'POST',
    path: '/v1/processes/:id/stdin',
    summary: 'Write to stdin, or close it',
    about: 'Either text or base64. A writeId is applied once, however often it is sent.',
    query: query({}),
    body: body({
      text: v.optional(v.string()),
      base64: v.optional(base64),
      eof: operations.write.entries.eof,
      writeId: operations.write.entries.writeId,
    }),
    answer: answers.written,
  },
  resize: {
    method: 'POST',
    path: '/v1/processes/:id/resize',
    summary: 'Change the size of a terminal',
    query: query({}),
    body: body(without(operations.resize)),
    answer: answers.numbered,
  },
  signal: {
    method: 'POST',
    path: '/v1/processes/:id/signal',
    summary: 'Send a signal, or terminate',
    about:
      'The signal reaches every descendant. "terminate" sends TERM, waits for the grace and sends KILL; survivors says what is left.',
    query: query({}),
    body: body(without(operations.signal)),
    answer: answers.signalled,
  },
  search: {
    method: 'GET',
    path: '/v1/processes/:id/search',
    summary: 'Search the output',
    query: query(without(operations.search)),
    answer: answers.found,
  },
  ports: {
    method: 'GET',
    path: '/v1/processes/:id/ports',
    summary: 'List the ports that a process listens on',
    query: query({}),
    answer: answers.ports,
  },
  ...terminalOperations,
  completions: {
    method: 'GET',
    path: '/v1/completions',
    summary: 'Read the ends of processes that were not acknowledged yet',
    about: 'Each subscriber is told each end until it acknowledges it.',
    query: query({
      subscriber: operations.completions.entries.subscriber,
      after: operations.completions.entries.after,
      limit: operations.completions.entries.limit,
      waitMs: operations.completions.entries.waitMs,
    }),
    answer: answers.completions,
  },
  followCompletions: {
    method: 'GET',
    path: '/v1/completions/follow',
    summary: 'Follow the ends of processes',
    about:
      'Server-sent events named "completion", the number as id. Goes on after Last-Event-ID, or after the query parameter. Acknowledging stays a call of its own.',
    query: query({
      subscriber: operations.completions.entries.subscriber,
      after: operations.completions.entries.after,
    }),
    media: 'text/event-stream',
  },
  acknowledge: {
    method: 'POST',
    path: '/v1/completions/acknowledge',
    summary: 'Acknowledge ends',
    query: query({}),
    body: body(operations.acknowledge.entries),
    answer: answers.acknowledged,
  },
  owners: {
    method: 'GET',
    path: '/v1/owners',
    summary: 'Who has processes here, and how many',
    about: 'A scoped token sees its own owner only.',
    query: query({}),
    answer: answers.owners,
  },
  limits: {
    method: 'GET',
    path: '/v1/limits',
    summary: 'Every bound that is in force',
    about: 'Those of the host by their names, and those of this server.',
    query: query({}),
    answer: answers.limits,
  },
  health: {
    method: 'GET',
    path: '/v1/health',
    summary: 'How the host is',
    about: 'The counts are for the admin token only.',
    query: query({}),
    answer: answers.health,
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    summary: 'Figures for Prometheus',
    about: 'For the admin token only.',
    query: query({}),
    media: 'text/plain; version=0.0.4; charset=utf-8',
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This description, OpenAPI 3.1',
    query: query({}),
    media: 'application/json',
  },
  docs: {
    method: 'GET',
    path: '/docs',
    summary: 'This description, as a page to read',
    query: query({}),
    media: 'text/html; charset=utf-8',
  },
} as const satisfies Record<string, NativeOperation>;

export interface NativeOperation {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly about?: string;
  readonly query: v.StrictObjectSchema<v.ObjectEntries, undefined>;
  readonly body?: v.StrictObjectSchema<v.ObjectEntries, undefined>;
  /** What the JSON of the answer looks like. */
  readonly answer?: v.GenericSchema;
  /** Or what else is answered. */
  readonly media?: string;
}

export type NativeName = keyof typeof nativeOperations;
type Row<Name extends NativeName> = (typeof nativeOperations)[Name];

export type Query<Name extends NativeName> = v.InferOutput<Row<Name>['query']>;
export type Body<Name extends NativeName> =
  Row<Name> extends { readonly body: infer Schema extends v.GenericSchema }
    ? v.InferOutput<Schema>
    : undefined;
/** Nothing for rows that write their answer themselves. */
export type Answer<Name extends NativeName> =
  Row<Name> extends { readonly answer: infer Schema extends v.GenericSchema }
    ? v.InferOutput<Schema>
    : void;
