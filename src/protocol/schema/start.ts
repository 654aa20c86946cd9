// The input of `start`.

import * as v from 'valibot';
import { confinement } from '../confinement/input.ts';
import { optional } from './described.ts';
import { id, milliseconds, shortText, size, text } from './fields.ts';
import { textRecord } from './text-record.ts';

const variables = textRecord(
  v.pipe(
    text,
    v.minLength(1),
    v.check((name) => !name.includes('='), 'contains "="'),
  ),
  text,
);

/** Limited because every row of a list carries them. */
const LABELS_CHARS = 96 * 1024;
const labels = v.pipe(
  textRecord(shortText, v.pipe(text, v.maxLength(4096))),
  v.check(
    (all) => charsOf(all) <= LABELS_CHARS,
    `are more than ${LABELS_CHARS} characters together`,
  ),
);

function charsOf(texts: Record<string, string>): number {
  let chars = 0;
  for (const name in texts) chars += name.length + (texts[name]?.length ?? 0);
  return chars;
}

const environment = v.object({
  /** The base: all of the host's environment, the few variables that every program needs, or nothing. */
  inherit: v.optional(v.picklist(['all', 'core', 'none'])),
  /** Globs of names to leave out, case-insensitive. */
  exclude: v.optional(v.array(shortText)),
  /** Applied after `exclude`. */
  set: v.optional(variables),
  /** If given, only these names remain. */
  only: v.optional(v.array(shortText)),
});

export const start = v.object({
  command: optional(
    'A command for "sh -c". Exactly one of command and argv.',
    v.pipe(text, v.minLength(1)),
  ),
  argv: optional('Program and arguments, without a shell.', v.pipe(v.array(text), v.minLength(1))),
  arg0: optional('argv[0] of the program, instead of the first of argv.', text),
  cwd: optional('The working directory; "~" is expanded.', v.pipe(text, v.minLength(1))),
  environment: optional('Policy for inherited variables, applied before env.', environment),
  env: optional(
    'Variables for this process; they override all others. Their values are never shown again.',
    variables,
  ),
  streams: optional(
    'merged: stdout and stderr in one stream. separate: two streams. pty: a terminal.',
    v.picklist(['merged', 'separate', 'pty']),
  ),
  stdin: optional(
    'pipe: stdin can be written. none: stdin is empty.',
    v.picklist(['none', 'pipe']),
  ),
  size: optional('Columns and rows of the terminal.', size),
  term: optional('The terminal type, TERM.', shortText),
  id: optional('An id of your choice (default: generated).', id),
  key: optional(
    'Idempotency key: an equal start attaches to the process that exists, a different one is refused.',
    shortText,
  ),
  name: optional('A name for people.', shortText),
  labels: optional('Labels that are stored with the process.', labels),
  hardTimeoutMs: optional(
    'End the process after this long. No other timeout ends it.',
    v.pipe(milliseconds, v.minValue(1)),
  ),
  keepMs: optional('How long to keep it after it has closed.', milliseconds),
  /** Default for terminals: yes, except input that is not echoed. */
  recordInput: optional('Whether input to stdin is stored in the journal.', v.boolean()),
  marks: optional(
    'For a shell on a terminal: report where each command begins and ends. For "bash -c": report the statuses of its last pipeline.',
    v.boolean(),
  ),
  idleTimeoutMs: optional(
    'For a terminal: end it after this long without input or output.',
    milliseconds,
  ),
  ...confinement,
  /** Not part of a keyed start's input: the same start with another lease attaches. */
  lease: optional(
    'End the process with this lease; the lease must be open and of the same owner.',
    id,
  ),
  waitMs: optional(
    'Return when it has exited, or after this long; the wait ends nothing (default 0: return at once).',
    milliseconds,
  ),
  settleMs: optional(
    'With waitMs: wait up to this much longer until the output is closed and no descendant is alive.',
    milliseconds,
  ),
});
