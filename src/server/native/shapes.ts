// The schemas of native answers: for the API description, and for tests that check answers. The types are the host's
// own. Clients ignore fields that they do not know.

import * as v from 'valibot';
import { errors, type ErrorCode } from '../../protocol/errors.ts';
import { defaultLimits, type Limits } from '../../protocol/limits.ts';
import type {
  Completion,
  Health,
  ListeningPort,
  Met,
  Missed,
  Results,
  SignalResult,
  WaitResult,
} from '../../protocol/host-api.ts';
import type { AllMeans } from '../../protocol/confinement/confinement.ts';
import type { ByteCounts, ProcessInfo, Usage } from '../../protocol/process.ts';
import type { SearchHit, SearchResult, Truncation } from '../../protocol/views.ts';
import {
  cause,
  confinement,
  event,
  means,
  outcome,
  shape,
  size,
  text,
  whole,
} from './event-shapes.ts';
import type { NativePage } from './events.ts';

const state = v.picklist(['running', 'exited', 'closed', 'lost']);

const bytes = shape<ByteCounts>(
  v.object({ total: whole, retained: whole, dropped: whole, lost: whole }),
);

const usage = shape<Usage>(
  v.object({
    userMs: whole,
    systemMs: whole,
    peakMemoryBytes: v.exactOptional(whole),
    peakMemoryAtMostBytes: v.exactOptional(whole),
    readBytes: whole,
    writtenBytes: whole,
    peakProcesses: v.exactOptional(whole),
    throttledMs: v.exactOptional(whole),
    by: v.picklist(['cgroup', 'wait']),
    complete: v.boolean(),
  }),
);

const process = shape<ProcessInfo>(
  v.object({
    id: text,
    host: v.exactOptional(text),
    archived: v.exactOptional(v.literal(true)),
    owner: text,
    name: v.exactOptional(text),
    key: v.exactOptional(text),
    command: text,
    argv: v.array(text),
    cut: v.exactOptional(v.literal(true)),
    cwd: text,
    pid: whole,
    streams: v.picklist(['merged', 'separate', 'pty']),
    stdin: v.picklist(['none', 'pipe']),
    size: v.exactOptional(size),
    terminal: v.exactOptional(
      v.object({
        term: text,
        marks: v.exactOptional(text),
        idleTimeoutMs: v.exactOptional(whole),
        queries: v.exactOptional(v.literal('keeper')),
      }),
    ),
    labels: v.exactOptional(v.record(text, text)),
    lease: v.exactOptional(text),
    state,
    settled: v.boolean(),
    outcome: v.exactOptional(outcome),
    usage: v.exactOptional(usage),
    causes: v.exactOptional(v.array(cause)),
    confinement: v.exactOptional(confinement),
    startedAtMs: whole,
    exitedAtMs: v.exactOptional(whole),
    closedAtMs: v.exactOptional(whole),
    durationMs: whole,
    lastOutputAtMs: v.exactOptional(whole),
    seq: whole,
    bytes,
    degraded: v.exactOptional(text),
  }),
);

const missed = shape<Missed>(
  v.object({
    fromSeq: whole,
    toSeq: whole,
    bytes: whole,
    reason: v.picklist(['limit', 'storage', 'damage']),
  }),
);

const page = shape<NativePage>(
  v.object({
    events: v.array(event),
    nextAfter: whole,
    nextOffset: whole,
    missed: v.exactOptional(missed),
    seq: whole,
    state,
    outcome: v.exactOptional(outcome),
    end: v.boolean(),
  }),
);

const truncation = shape<Truncation>(
  v.object({
    originalBytes: whole,
    retainedBytes: whole,
    omittedBytes: whole,
    cutLines: whole,
    cutLineBytes: whole,
    lostBytes: whole,
    strategy: v.literal('head_tail'),
  }),
);

const hit = shape<SearchHit>(
  v.object({
    offset: whole,
    endOffset: whole,
    lineNumber: v.exactOptional(whole),
    line: text,
    match: text,
    before: v.array(text),
    after: v.array(text),
  }),
);

const found = shape<SearchResult>(
  v.object({
    hits: v.array(hit),
    searchedFrom: whole,
    searchedTo: whole,
    resumeFrom: whole,
    resume: v.object({ offset: whole, lineStart: whole, reported: v.boolean() }),
    missedBytes: whole,
    truncated: v.boolean(),
  }),
);

const signalled = shape<SignalResult>(
  v.object({
    signalled: v.array(whole),
    escapees: v.array(whole),
    survivors: v.array(v.object({ pid: whole, command: text })),
    escalated: v.boolean(),
    refused: v.exactOptional(
      v.array(
        v.object({
          pid: whole,
          command: text,
          reason: v.picklist(['not_permitted', 'too_many_files', 'unsupported']),
        }),
      ),
    ),
    unsearched: v.exactOptional(v.picklist(['too_many_files'])),
  }),
);

const met = shape<Met>(
  v.object({
    id: text,
    index: whole,
    kind: v.picklist(['exit', 'closed', 'settled', 'growth', 'text', 'pattern', 'port', 'silence']),
    met: v.boolean(),
    after: whole,
    offset: whole,
    match: v.exactOptional(text),
    line: v.exactOptional(text),
    lineOffset: v.exactOptional(whole),
    port: v.exactOptional(whole),
    process,
  }),
);

const port = shape<ListeningPort>(v.object({ port: whole, address: text, pid: whole }));

const completion = shape<Completion>(
  v.object({
    number: whole,
    id: text,
    host: v.exactOptional(text),
    owner: text,
    name: v.exactOptional(text),
    command: text,
    outcome,
    durationMs: whole,
    usage: v.exactOptional(usage),
    causes: v.exactOptional(v.array(cause)),
    confinement: v.exactOptional(confinement),
    bytes: whole,
    lastLines: text,
    atMs: whole,
    labels: v.exactOptional(v.record(text, text)),
  }),
);

/** A scoped token sees no counts, because they reveal what others do. */
type NativeHealth = Pick<Health, 'version' | 'uptimeMs' | 'children'> & Partial<Health>;

const health = shape<NativeHealth>(
  v.object({
    version: text,
    uptimeMs: whole,
    children: v.picklist(['posix', 'node']),
    pid: v.exactOptional(whole),
    live: v.exactOptional(whole),
    ended: v.exactOptional(whole),
    parkedWaits: v.exactOptional(whole),
    journalBytes: v.exactOptional(whole),
    rssBytes: v.exactOptional(whole),
    degraded: v.exactOptional(whole),
  }),
);

const owners = shape<Results['owners']>(
  v.object({
    owners: v.array(v.object({ owner: text, live: whole, ended: whole, bytes: whole })),
  }),
);

const limitNames = Object.keys(defaultLimits) as (keyof Limits)[];
const limits = shape<{
  readonly host: Limits;
  readonly server: {
    readonly maxBodyBytes: number;
    readonly startsPerSecond: number;
    readonly startsAtOnce: number;
  };
  readonly enforcement: AllMeans;
}>(
  v.object({
    host: v.object(
      Object.fromEntries(limitNames.map((name) => [name, v.number()])) as Record<
        keyof Limits,
        v.NumberSchema<undefined>
      >,
    ),
    server: v.object({
      maxBodyBytes: whole,
      startsPerSecond: v.number(),
      startsAtOnce: v.number(),
    }),
    enforcement: means,
  }),
);

const codes = Object.keys(errors) as [ErrorCode, ...ErrorCode[]];
const error = v.object({
  error: v.object({
    code: v.picklist(codes),
    message: text,
    remedy: text,
    retryable: v.boolean(),
    details: v.exactOptional(v.looseObject({})),
  }),
});

/** The schemas that the API description refers to by name. */
export const named = {
  Process: process,
  Outcome: outcome,
  Usage: usage,
  ByteCounts: bytes,
  Event: event,
  EventPage: page,
  Missed: missed,
  Truncation: truncation,
  SearchHit: hit,
  Met: met,
  Completion: completion,
  ListeningPort: port,
  Error: error,
} as const;

/** The answers of the operations. */
export const answers = {
  process,
  page,
  found,
  signalled,
  owners,
  limits,
  health,
  started: shape<Results['start']>(v.object({ process, attached: v.boolean() })),
  processes: shape<Results['list']>(
    v.object({
      processes: v.array(process),
      total: whole,
      next: v.exactOptional(whole),
      incomplete: v.exactOptional(v.array(text)),
    }),
  ),
  run: shape<Results['text'] & { readonly attached: boolean; readonly timedOut: boolean }>(
    v.object({
      text,
      truncated: v.exactOptional(truncation),
      process,
      attached: v.boolean(),
      timedOut: v.boolean(),
    }),
  ),
  text: shape<Results['text']>(v.object({ text, truncated: v.exactOptional(truncation), process })),
  written: shape<Results['write']>(v.object({ bytes: whole, repeated: v.boolean(), seq: whole })),
  numbered: shape<{ readonly seq: number }>(v.object({ seq: whole })),
  waited: shape<WaitResult>(v.object({ met: v.array(met), timedOut: v.boolean() })),
  ports: shape<Results['ports']>(v.object({ ports: v.array(port) })),
  removed: shape<{ readonly removed: number }>(v.object({ removed: whole })),
  completions: shape<Results['completions']>(v.object({ completions: v.array(completion) })),
  acknowledged: shape<Results['acknowledge']>(v.object({ acknowledged: whole })),
  nothing: shape<Record<string, never>>(v.strictObject({})),
} as const;
