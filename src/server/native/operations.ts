// The native operations: one row per method and path, with the schemas of its query, body and answer. The rows check
// requests and are the source of /openapi.json and of its page in the documentation. Their fields are those of the host's operations.

import * as v from 'valibot';
import { optional } from '../../protocol/schema/described.ts';
import { start } from '../../protocol/schema/start.ts';
import { operations } from '../../protocol/operations.ts';
import { hostOperations } from '../fleet-door.ts';
import { leaseOperations } from './lease-operations.ts';
import { query } from './query.ts';
import { dashboardOperations } from '../dashboard/operations.ts';
import { answers } from './shapes.ts';
import { makeStrict } from './strict-schema.ts';
import { waitConditions } from './wait-conditions.ts';
import { terminalOperations } from './terminals/operations.ts';

const base64 = v.pipe(v.string(), v.base64('must be base64'));

/** Strict at every depth. */
const body = <Entries extends v.ObjectEntries>(entries: Entries) =>
  makeStrict(v.strictObject(entries));

const without = <Entries extends v.ObjectEntries>(row: v.ObjectSchema<Entries, undefined>) => {
  const { id: _id, ...rest } = row.entries as Entries & { id?: unknown };
  return rest as Omit<Entries, 'id'>;
};

/** The other fields of `read` are for dialects that number events and pace output themselves. */
const { after, offset, maxBytes, waitMs } = operations.read.entries;
const pageQuery = { after, offset, maxBytes, waitMs };
const { timeoutMs } = operations.wait.entries;
const { waitMs: _waitMs, settleMs: _settleMs, ...started } = start.entries;

export const nativeOperations = {
  start: {
    method: 'POST',
    path: '/v1/processes',
    summary: 'Start a process',
    about:
      'With a key, an equal start attaches to the existing process and a different one is refused. Starts are limited per token; Retry-After says when to try again.',
    query: query({}),
    body: body(start.entries),
    answer: answers.started,
  },
  run: {
    method: 'POST',
    path: '/v1/run',
    summary: 'Start a process, wait for its exit, and read its output',
    about:
      'One call for a short command. Answers when the process has exited, or after timeoutMs (default 60000): then timedOut is true and the process keeps running.',
    query: query({}),
    body: body({
      ...started,
      timeoutMs,
      maxBytes: operations.text.entries.maxBytes,
      clean: optional('true: without terminal control sequences.', v.boolean()),
    }),
    answer: answers.run,
  },
  list: {
    method: 'GET',
    path: '/v1/processes',
    summary: 'List processes',
    about: 'Running processes first, then the newest. total counts all matches.',
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
    about:
      'A process that has not closed is refused, unless force is true: then it is stopped first.',
    query: query(without(operations.remove)),
    answer: answers.nothing,
  },
  prune: {
    method: 'POST',
    path: '/v1/prune',
    summary: 'Remove every exited process',
    about: 'Only closed or lost processes without live descendants; it stops nothing.',
    query: query({}),
    answer: answers.removed,
  },
  text: {
    method: 'GET',
    path: '/v1/processes/:id/text',
    summary: 'Read the output as text, head and tail',
    query: query({
      ...without(operations.text),
      clean: optional('true: without terminal control sequences.', v.boolean()),
    }),
    answer: answers.text,
  },
  events: {
    method: 'GET',
    path: '/v1/processes/:id/events',
    summary: 'Read a page of events',
    about:
      'For the next page use after=nextAfter and offset=nextOffset. With waitMs the call waits for a new event or the end.',
    query: query(pageQuery),
    answer: answers.page,
  },
  bytes: {
    method: 'GET',
    path: '/v1/processes/:id/bytes',
    summary: 'Read the output as raw bytes',
    about:
      'With maxBytes: one range. Without it: everything retained from the offset to the current end. Headers: Holdfast-Offset, Holdfast-Total-Bytes, Holdfast-Missed-Bytes; the trailer Holdfast-Skipped-Bytes counts bytes that a stream skipped.',
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
      'Server-sent events: one per event of the journal, its sequence number as id, its kind as event name, the same JSON as in a page as data. Continues after Last-Event-ID, or after the query parameter. "missed" reports events that are no longer stored; "end" is the last event; "problem" carries an error.',
    query: query({ after: operations.read.entries.after }),
    media: 'text/event-stream',
  },
  waitOne: {
    method: 'POST',
    path: '/v1/processes/:id/wait',
    summary: 'Wait for a process',
    about:
      'Returns when the first condition is met, when none can be met any more, or after timeoutMs. Never ends a process. Closing the connection cancels the wait.',
    query: query({}),
    body: body({ for: waitConditions, timeoutMs }),
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
    about: 'Give text or base64. A write with the same writeId is applied once.',
    query: query({}),
    body: body({
      text: optional('Written as UTF-8.', v.string()),
      base64: optional('Bytes as base64, when they are not text.', base64),
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
      'The signal goes to every descendant. "terminate" sends SIGTERM, waits graceMs, then sends SIGKILL; survivors lists what is left.',
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
  ...leaseOperations,
  ...dashboardOperations,
  completions: {
    method: 'GET',
    path: '/v1/completions',
    summary: 'List unacknowledged completions',
    about: 'Each subscriber gets each process exit until it acknowledges it.',
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
    summary: 'Follow completions',
    about:
      'Server-sent events named "completion", the number as id. Continues after Last-Event-ID, or after the query parameter. Acknowledge with a separate call.',
    query: query({
      subscriber: operations.completions.entries.subscriber,
      after: operations.completions.entries.after,
    }),
    media: 'text/event-stream',
  },
  acknowledge: {
    method: 'POST',
    path: '/v1/completions/acknowledge',
    summary: 'Acknowledge completions',
    query: query({}),
    body: body(operations.acknowledge.entries),
    answer: answers.acknowledged,
  },
  owners: {
    method: 'GET',
    path: '/v1/owners',
    summary: 'List owners and their numbers of processes',
    about: 'A scoped token sees only its own owner.',
    query: query({}),
    answer: answers.owners,
  },
  ...hostOperations,
  limits: {
    method: 'GET',
    path: '/v1/limits',
    summary: 'List limits',
    about:
      'Limits of the host by name, limits of this server, and which limits and sandboxes of a start this machine can enforce: by what, or why not.',
    query: query({}),
    answer: answers.limits,
  },
  health: {
    method: 'GET',
    path: '/v1/health',
    summary: 'Health of the host',
    about: 'Only the admin token gets the counts.',
    query: query({}),
    answer: answers.health,
  },
  metrics: {
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics for Prometheus',
    about: 'Admin token only.',
    query: query({}),
    media: 'text/plain; version=0.0.4; charset=utf-8',
  },
  openapi: {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This API as OpenAPI 3.1',
    about: 'Needs no token.',
    anonymous: true,
    query: query({}),
    media: 'application/json',
  },
} as const satisfies Record<string, NativeOperation>;

export interface NativeOperation {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly about?: string;
  /** Needs no token: it reveals no process and changes nothing. */
  readonly anonymous?: true;
  readonly query: v.StrictObjectSchema<v.ObjectEntries, undefined>;
  readonly body?: v.StrictObjectSchema<v.ObjectEntries, undefined>;
  /** The schema of the JSON answer. */
  readonly answer?: v.GenericSchema;
  /** The media type of any other answer. */
  readonly media?: string;
}

export type NativeName = keyof typeof nativeOperations;
type Row<Name extends NativeName> = (typeof nativeOperations)[Name];

export type Query<Name extends NativeName> = v.InferOutput<Row<Name>['query']>;
export type Body<Name extends NativeName> =
  Row<Name> extends { readonly body: infer Schema extends v.GenericSchema }
    ? v.InferOutput<Schema>
    : undefined;
/** Void for operations that write their answer themselves. */
export type Answer<Name extends NativeName> =
  Row<Name> extends { readonly answer: infer Schema extends v.GenericSchema }
    ? v.InferOutput<Schema>
    : void;
