// The operations of a host: one row per operation, with the shape of what it takes. What it answers is the type of
// `HostApi`. Every door checks its input with these rows, once.

import * as v from 'valibot';
import { idPattern } from '../base/ids.ts';
import { HoldfastError } from './errors.ts';
import { MAX_PAGE_BYTES } from './limits.ts';
import type { OperationName } from './operation-names.ts';

export type { OperationName };

const count = (most: number) => v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most));
const milliseconds = count(Number.MAX_SAFE_INTEGER);
const position = count(2 ** 48 - 1);
const noNul = v.check((text: string) => !text.includes('\0'), 'contains a NUL byte');
const text = v.pipe(v.string(), noNul);
const shortText = v.pipe(text, v.minLength(1), v.maxLength(512));
const id = v.pipe(v.string(), v.regex(idPattern, 'must be 1 to 64 letters, digits, "-" or "_"'));
const bytes = v.custom<Uint8Array>((value) => value instanceof Uint8Array, 'must be bytes');
const pageBytes = v.pipe(count(MAX_PAGE_BYTES), v.minValue(1));
const size = v.object({
  cols: v.pipe(count(1000), v.minValue(1)),
  rows: v.pipe(count(1000), v.minValue(1)),
});
const variables = v.record(
  v.pipe(
    text,
    v.minLength(1),
    v.check((name) => !name.includes('='), 'contains "="'),
  ),
  text,
);

const environment = v.object({
  /** What to begin with: all of the host's environment, the few variables every program needs, or nothing. */
  inherit: v.optional(v.picklist(['all', 'core', 'none'])),
  /** Names to leave out, "*" standing for anything, in any case. */
  exclude: v.optional(v.array(shortText)),
  /** Set after that. */
  set: v.optional(variables),
  /** If given, only these names remain. */
  only: v.optional(v.array(shortText)),
});

const start = v.object({
  /** A command for `sh -c`. Exactly one of `command` and `argv`. */
  command: v.optional(v.pipe(text, v.minLength(1))),
  argv: v.optional(v.pipe(v.array(text), v.minLength(1))),
  /** What the program is told as its own name, instead of the first of `argv`. */
  arg0: v.optional(text),
  cwd: v.optional(v.pipe(text, v.minLength(1))),
  environment: v.optional(environment),
  /** Variables of this start, over everything else. */
  env: v.optional(variables),
  streams: v.optional(v.picklist(['merged', 'separate', 'pty'])),
  stdin: v.optional(v.picklist(['none', 'pipe'])),
  size: v.optional(size),
  term: v.optional(shortText),
  id: v.optional(id),
  /** Same key and inputs: attach to the process that exists. Same key, other inputs: refused. */
  key: v.optional(shortText),
  name: v.optional(shortText),
  labels: v.optional(v.record(shortText, v.pipe(text, v.maxLength(4096)))),
  /** Ends the process after this long; nothing else about time ever does. */
  hardTimeoutMs: v.optional(v.pipe(milliseconds, v.minValue(1))),
  /** Kept this long after it closed instead of the host's own age limit. */
  keepMs: v.optional(milliseconds),
  /** Whether what is written to stdin is kept in the journal. Terminals: yes, except what is typed unechoed. */
  recordInput: v.optional(v.boolean()),
  /** Terminals whose program is a shell: it is made to tell where each command begins and ends. */
  marks: v.optional(v.boolean()),
  /** Ends the process when nothing was printed, typed or changed for so long. 0 is never. */
  idleTimeoutMs: v.optional(milliseconds),
  /** Answers when it has exited, or after so long. Either way it goes on; what it printed is asked for as ever. */
  waitMs: v.optional(milliseconds),
});

/** How the end of a run is to be known. auto: by the shell's marks where it has them, otherwise not at all. */
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

const target = { id: v.string() };

export const operations = {
  start,
  list: v.object({
    state: v.optional(v.picklist(['running', 'exited', 'closed', 'lost'])),
    name: v.optional(v.string()),
    key: v.optional(v.string()),
    limit: v.optional(v.pipe(count(10_000), v.minValue(1))),
    skip: v.optional(count(1_000_000)),
  }),
  get: v.object(target),
  read: v.object({
    ...target,
    after: v.optional(position),
    /** Instead of `after`: the last event the reader has, counted without asides. Not together with `waitMs`. */
    afterCount: v.optional(position),
    /** Tell which events of the page are asides: neither output nor an ending. */
    asides: v.optional(v.boolean()),
    /** Output bytes the reader has, so that what it missed can be told exactly. */
    offset: v.optional(position),
    maxBytes: v.optional(pageBytes),
    /** Wait this long for something after `after`, or for the end. */
    waitMs: v.optional(milliseconds),
    /** Hold the process when its output gets this far ahead of the page's end; a reader that is gone holds nobody. */
    paceBytes: v.optional(v.pipe(position, v.minValue(1))),
  }),
  range: v.object({ ...target, offset: position, maxBytes: v.optional(pageBytes) }),
  text: v.object({
    ...target,
    maxBytes: v.optional(v.pipe(count(1024 * 1024), v.minValue(256))),
    maxLineBytes: v.optional(v.pipe(count(1024 * 1024), v.minValue(64))),
    /** Wait this long for the exit. */
    waitMs: v.optional(milliseconds),
    /** And this long after it for the last words of what it left behind. */
    drainMs: v.optional(milliseconds),
  }),
  search: v.object({
    ...target,
    pattern: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
    kind: v.optional(v.picklist(['text', 'regex'])),
    ignoreCase: v.optional(v.boolean()),
    from: v.optional(position),
    to: v.optional(position),
    context: v.optional(count(20)),
    limit: v.optional(v.pipe(count(1000), v.minValue(1))),
  }),
  write: v.object({
    ...target,
    data: v.optional(bytes),
    eof: v.optional(v.boolean()),
    /** The same id is applied once. */
    writeId: v.optional(shortText),
    /** Answer when it is accepted, instead of when the process's input has taken it. */
    queued: v.optional(v.boolean()),
    /** How it was meant, for the record: typed text, a paste, or keys by their names. */
    as: v.optional(v.picklist(['text', 'paste', 'keys'])),
    keys: v.optional(v.pipe(v.array(shortText), v.maxLength(10_000))),
    /** Who types, when the keyboard of a terminal is held. */
    holder: v.optional(shortText),
  }),
  resize: v.object({ ...target, size }),
  signal: v.object({
    ...target,
    /** A signal by name ("SIGINT" or "INT"), or "terminate": TERM and CONT, a grace, then KILL. */
    signal: shortText,
    graceMs: v.optional(milliseconds),
    /** Who asks, for the record. */
    by: v.optional(shortText),
    /** foreground: only to the group that has the terminal now, as a key would. */
    reach: v.optional(v.picklist(['all', 'foreground'])),
  }),
  run: v.object({
    ...target,
    command: v.pipe(text, v.minLength(1), v.maxLength(10_000_000)),
    /** The caller's name for this run: the same name is run once, and asking again waits for it again. */
    run: v.optional(id),
    /** False: only typed. */
    wait: v.optional(v.boolean()),
    /** How long to wait; the command goes on afterwards. */
    timeoutMs: v.optional(milliseconds),
    completion: v.optional(completion),
    holder: v.optional(shortText),
  }),
  /** Holds the keyboard of a terminal: until the time is over nobody else types. 0 gives it back. */
  keyboard: v.object({
    ...target,
    holder: shortText,
    forMs: v.pipe(milliseconds, v.maxValue(600_000)),
  }),
  runWait: v.object({ ...target, run: v.string(), timeoutMs: v.optional(milliseconds) }),
  mark: v.object({ ...target, label: v.pipe(text, v.maxLength(4096)) }),
  wait: v.object({
    waits: v.pipe(
      v.array(
        v.object({ ...target, for: v.pipe(v.array(condition), v.minLength(1), v.maxLength(16)) }),
      ),
      v.minLength(1),
      v.maxLength(256),
    ),
    /** first: the first condition of any process. all: one condition of every process. */
    mode: v.optional(v.picklist(['first', 'all'])),
    timeoutMs: v.optional(milliseconds),
  }),
  ports: v.object(target),
  remove: v.object({ ...target, force: v.optional(v.boolean()) }),
  completions: v.object({
    subscriber: v.optional(shortText),
    /** Only those with a higher number: what comes before them may stay unacknowledged. */
    after: v.optional(position),
    limit: v.optional(v.pipe(count(1000), v.minValue(1))),
    waitMs: v.optional(milliseconds),
  }),
  acknowledge: v.object({
    subscriber: v.optional(shortText),
    numbers: v.pipe(v.array(position), v.maxLength(10_000)),
  }),
  /** Concerns the owner who asks. When it runs out, the owner's processes are ended. */
  lease: v.object({
    /** open: a new one. take: one that is there, from whoever holds it. renew: only by its holder. */
    mode: v.picklist(['open', 'take', 'renew']),
    holder: shortText,
    ttlMs: milliseconds,
    /** Processes with this label outlive it. */
    spareLabel: v.optional(shortText),
  }),
  owners: v.object({}),
  limits: v.object({}),
  health: v.object({}),
} as const satisfies Record<OperationName, v.GenericSchema>;

export type Params<Name extends OperationName> = v.InferOutput<(typeof operations)[Name]>;
export type StartSpec = Params<'start'>;
export type Condition = v.InferOutput<typeof condition>;

/** The input of an operation as its row describes it, or `invalid_input` naming the first field that is wrong. */
export function parseParams<Name extends OperationName>(name: Name, input: unknown): Params<Name> {
  const parsed = v.safeParse(operations[name], input ?? {}, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const field = issue ? v.getDotPath(issue) : null;
  const problem = issue?.message ?? 'invalid';
  throw new HoldfastError(
    'invalid_input',
    field === null ? `${name}: ${problem}` : `${name}: "${field}": ${problem}`,
    {
      operation: name,
      ...(field !== null && { field }),
    },
  );
}
