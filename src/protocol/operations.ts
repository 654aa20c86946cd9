// The operations of a host: one row per operation with the schema of its input. `HostApi` has the types of the results.
// Every entry point checks its input once with these rows.

import * as v from 'valibot';
import { HoldfastError } from './errors.ts';
import { MAX_PAGE_BYTES, MAX_TYPED_CHARS } from './limits.ts';
import { inputProblem } from './input-problem.ts';
import type { OperationName } from './operation-names.ts';
import { described, optional } from './schema/described.ts';
import { count, id, milliseconds, position, shortText, size, text } from './schema/fields.ts';
import { ceiling, limits } from './confinement/input.ts';
import { start } from './schema/start.ts';

export type { OperationName };

/** Never part of a file name, so it may begin with "_". */
const runName = v.pipe(
  v.string(),
  v.regex(/^\w[\w-]{0,63}$/, 'must be 1 to 64 letters, digits, "-" or "_"'),
);
const bytes = v.custom<Uint8Array>((value) => value instanceof Uint8Array, 'must be bytes');
const pageBytes = v.pipe(count(MAX_PAGE_BYTES), v.minValue(1));
/** A lease that is never renewed ends after a day at the latest. */
const LONGEST_LEASE_MS = 24 * 60 * 60 * 1000;

const completion = v.picklist(['auto', 'sentinel', 'none']);

const condition = v.variant('kind', [
  v.object({ kind: v.literal('exit') }),
  v.object({ kind: v.literal('closed') }),
  v.object({ kind: v.literal('settled') }),
  v.object({ kind: v.literal('growth'), after: position }),
  v.object({
    kind: v.literal('text'),
    text: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
    from: v.optional(position),
    ignoreCase: v.optional(v.boolean()),
  }),
  v.object({
    kind: v.literal('pattern'),
    pattern: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
    from: v.optional(position),
    ignoreCase: v.optional(v.boolean()),
  }),
  v.object({ kind: v.literal('port'), port: v.optional(v.pipe(count(65535), v.minValue(1))) }),
  v.object({ kind: v.literal('silence'), forMs: v.pipe(milliseconds, v.minValue(1)) }),
]);

export const conditions = described(
  'Conditions; returns when the first is met.',
  v.pipe(v.array(condition), v.minLength(1), v.maxLength(16)),
);

const target = { id: v.string() };

export const operations = {
  start: v.object({
    ...start.entries,
    /** Of the owner's tokens at the gateway of a fleet: it holds beside those of this host. */
    ceiling: v.optional(ceiling),
  }),
  list: v.object({
    state: optional(
      'Only processes in this state.',
      v.picklist(['running', 'exited', 'closed', 'lost']),
    ),
    name: optional('Only processes with this name.', v.string()),
    key: optional('Only the process started with this key.', v.string()),
    label: optional(
      'Only processes with this label, as "name=value" or as "name" with any value.',
      v.string(),
    ),
    startedBefore: optional(
      'Only processes that were started before this time, in milliseconds since 1970.',
      position,
    ),
    limit: optional('Maximum number of results.', v.pipe(count(10_000), v.minValue(1))),
    skip: optional('Number of results to skip.', count(1_000_000)),
    before: optional(
      'For paging: start with 281474976710655, then use next of each answer until it is absent. Newest first.',
      position,
    ),
  }),
  /** Changes of the list, for a client that keeps a copy of it. */
  changes: v.object({
    epoch: optional('Epoch of the answer before; without it the list begins anew.', shortText),
    after: optional('Version of the answer before.', position),
    limit: optional('Maximum number of changed processes.', v.pipe(count(10_000), v.minValue(1))),
    waitMs: optional(
      'How long to wait for a change of a state (default 0: do not wait).',
      milliseconds,
    ),
  }),
  get: v.object(target),
  read: v.object({
    ...target,
    after: optional('Continue after the event with this number.', position),
    /** Not together with `waitMs`. */
    afterCount: optional(
      'Instead of after: number of output and exit events that the reader has.',
      position,
    ),
    uncounted: optional(
      'true: list the events of the page that are neither output nor an exit.',
      v.boolean(),
    ),
    uncountedTo: optional(
      'With uncounted: up to this event, not to the end of the page.',
      position,
    ),
    offset: optional('Output bytes that the reader has, to count what it missed.', position),
    maxBytes: optional('Maximum bytes of output.', pageBytes),
    waitMs: optional(
      'How long to wait for a new event or the end (default 0: do not wait).',
      milliseconds,
    ),
    /** Ends when the reader no longer reads. */
    paceBytes: optional(
      'Pause the process when its output is this far ahead of the page.',
      v.pipe(position, v.minValue(1)),
    ),
    /** Without a name the reader is recognised by its position. */
    reader: optional(
      'Name of this reader for backpressure.',
      v.pipe(text, v.minLength(1), v.maxLength(64)),
    ),
  }),
  range: v.object({
    ...target,
    offset: described('Output bytes before the requested part.', position),
    maxBytes: optional('Maximum bytes of output.', pageBytes),
  }),
  text: v.object({
    ...target,
    maxBytes: optional('Maximum bytes of output.', v.pipe(count(1024 * 1024), v.minValue(256))),
    maxLineBytes: optional(
      'Longer lines are truncated in the middle.',
      v.pipe(count(1024 * 1024), v.minValue(64)),
    ),
    waitMs: optional('How long to wait for the exit (default 0: do not wait).', milliseconds),
    drainMs: optional(
      'How long to wait after the exit for output of remaining descendants.',
      milliseconds,
    ),
  }),
  search: v.object({
    ...target,
    pattern: described(
      'What to search for, line by line.',
      v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
    ),
    kind: optional('regex (default) or text.', v.picklist(['text', 'regex'])),
    ignoreCase: optional('Case-insensitive.', v.boolean()),
    from: optional('First byte to search.', position),
    to: optional('Where to stop.', position),
    context: optional('Context lines before and after each match.', count(20)),
    lineNumbers: optional(
      'Give the line number of each match. Only for a search from the beginning, up to the first missing byte.',
      v.boolean(),
    ),
    limit: optional('Maximum number of results.', v.pipe(count(1000), v.minValue(1))),
  }),
  write: v.object({
    ...target,
    data: v.optional(bytes),
    eof: optional('Close stdin afterwards.', v.boolean()),
    writeId: optional('A write with the same id is applied once.', shortText),
    /** Answer when the input is accepted, not when it has been written to the process. */
    queued: v.optional(v.boolean()),
    /** What the caller sent, for the journal: typed text, a paste, or named keys. */
    as: v.optional(v.picklist(['text', 'paste', 'keys'])),
    keys: optional(
      'Key names: Enter, C-c, ctrl+c, Up, F5, alt+x.',
      v.pipe(
        v.array(shortText),
        v.maxLength(10_000),
        v.check(
          (keys) => keys.join('').length <= MAX_TYPED_CHARS,
          `are more than ${MAX_TYPED_CHARS} characters together`,
        ),
      ),
    ),
    /** The caller's name if it holds the keyboard of the terminal. */
    holder: v.optional(shortText),
    /** It answers what the program asked its terminal. */
    isReply: v.optional(v.boolean()),
  }),
  resize: v.object({ ...target, size: described('Columns and rows of the terminal.', size) }),
  signal: v.object({
    ...target,
    signal: described('A signal name such as SIGINT, or "terminate".', shortText),
    graceMs: optional('For terminate: time between SIGTERM and SIGKILL.', milliseconds),
    by: optional('Sender to record with the signal.', shortText),
    reach: optional(
      'all: every descendant. foreground: only the group that has the terminal now.',
      v.picklist(['all', 'foreground']),
    ),
  }),
  run: v.object({
    ...target,
    command: described(
      'Text to type, one line or several.',
      v.pipe(text, v.minLength(1), v.maxLength(MAX_TYPED_CHARS)),
    ),
    run: optional(
      'A name for the run: a repeated call with the same name does not type again, it waits for the run.',
      runName,
    ),
    wait: optional('false: type the command and do not wait.', v.boolean()),
    timeoutMs: optional(
      'How long this call waits; it ends nothing (default: no limit).',
      milliseconds,
    ),
    completion: optional(
      'How to detect the exit. auto: marks of the shell, else a sentinel. sentinel: a line typed after the command. none: do not detect it.',
      completion,
    ),
    holder: v.optional(shortText),
  }),
  /** Locks the keyboard of a terminal for one holder. `forMs` 0 releases it. */
  keyboard: v.object({
    ...target,
    holder: shortText,
    forMs: v.pipe(milliseconds, v.maxValue(600_000)),
    /** Take it from the current holder. */
    steal: v.optional(v.boolean()),
    /** The holder's own terminal answers no queries: replies of the server may pass. */
    answers: v.optional(v.boolean()),
  }),
  runWait: v.object({
    ...target,
    run: v.string(),
    timeoutMs: optional(
      'How long this call waits; it ends nothing (default: no limit).',
      milliseconds,
    ),
  }),
  mark: v.object({
    ...target,
    label: described('Text of the mark.', v.pipe(text, v.maxLength(4096))),
  }),
  wait: v.object({
    waits: described(
      'Processes, each with its conditions.',
      v.pipe(v.array(v.object({ ...target, for: conditions })), v.minLength(1), v.maxLength(256)),
    ),
    mode: optional(
      'first: the first condition of any process. all: one condition of every process.',
      v.picklist(['first', 'all']),
    ),
    timeoutMs: optional(
      'How long this call waits; it ends nothing (default: no limit).',
      milliseconds,
    ),
  }),
  ports: v.object(target),
  /** Its living processes, with what each uses. */
  tree: v.object(target),
  /** What needs a person now. */
  attention: v.object({
    quietMs: optional(
      'Also processes that run and have printed nothing for this long.',
      v.pipe(milliseconds, v.minValue(1)),
    ),
  }),
  /** A person has looked: what it needed until now is dealt with. */
  dismiss: v.object(target),
  remove: v.object({
    ...target,
    force: optional('Stop it first if it has not closed.', v.boolean()),
  }),
  completions: v.object({
    subscriber: optional('Name of the subscriber; each has its own acknowledgements.', shortText),
    /** Earlier completions may stay unacknowledged. */
    after: optional('Continue after the completion with this number.', position),
    limit: optional('Maximum number of results.', v.pipe(count(1000), v.minValue(1))),
    waitMs: optional(
      'How long to wait for a new completion (default 0: do not wait).',
      milliseconds,
    ),
  }),
  acknowledge: v.object({
    subscriber: optional('Name of the subscriber; each has its own acknowledgements.', shortText),
    numbers: described(
      'The numbers of the completions.',
      v.pipe(v.array(position), v.maxLength(10_000)),
    ),
  }),
  /** The caller's own lease. When it expires, the caller's processes are ended. */
  lease: v.object({
    /** open: a new lease. take: an existing lease from its holder. renew: only by its holder. */
    mode: v.picklist(['open', 'take', 'renew']),
    holder: shortText,
    ttlMs: milliseconds,
    /** Processes with this label are not ended. */
    spareLabel: v.optional(shortText),
  }),
  /** Opens or renews a named lease. When it expires, the processes started under it are ended; `ttlMs` 0 ends it now. */
  holdLease: v.object({
    name: id,
    ttlMs: described('How long the lease lasts without being renewed.', count(LONGEST_LEASE_MS)),
  }),
  owners: v.object({}),
  limits: v.object({}),
  enforcement: v.object({
    total: optional(
      'A ceiling for all processes together; the admin only. Needs cgroup controllers.',
      v.pick(limits, ['memory', 'pids', 'cpus']),
    ),
  }),
  health: v.object({}),
} as const satisfies Record<OperationName, v.GenericSchema>;

export type Params<Name extends OperationName> = v.InferOutput<(typeof operations)[Name]>;
export type StartSpec = Params<'start'>;
export type Condition = v.InferOutput<typeof condition>;

/** Parses the input of an operation; throws `invalid_input` with the first wrong field. */
export function parseParams<Name extends OperationName>(name: Name, input: unknown): Params<Name> {
  const parsed = v.safeParse(operations[name], input ?? {}, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const field = issue ? v.getDotPath(issue) : null;
  const problem = issue ? inputProblem(issue) : 'invalid';
  throw new HoldfastError(
    'invalid_input',
    field === null ? `${name}: ${problem}` : `${name}: "${field}": ${problem}`,
    {
      operation: name,
      ...(field !== null && { field }),
    },
  );
}
