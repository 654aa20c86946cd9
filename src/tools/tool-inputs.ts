// What the tools take. The words on each field are what a model reads.

import * as v from 'valibot';
import { terminalInputs } from './terminal/inputs.ts';

const text = (about: string) => v.pipe(v.string(), v.description(about));
const some = (about: string) => v.pipe(v.string(), v.minLength(1), v.description(about));
const flag = (about: string) => v.optional(v.pipe(v.boolean(), v.description(about)));
const count = (least: number, most: number, about: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most), v.description(about));

const intent = v.optional(
  text(
    'A short description, such as "Running the tests", shown to the user alongside the command. Under 100 characters.',
  ),
);
const processId = some('The id from execute or process_list.');
const LAST_BYTE = 2 ** 48 - 1;

export const toolInputs = {
  execute: v.object({
    command: some('Command for a POSIX shell (sh -c). Do not end it with "&".'),
    model_intent: intent,
    timeout: v.optional(
      text(
        'How long to wait for the exit: "30s", "5m" (default "10s"). Afterwards the command keeps running and the result has its id.',
      ),
    ),
    workdir: v.optional(some('Working directory.')),
    run_in_background: flag(
      'Return at once and keep it running: for servers, watchers and parallel work.',
    ),
    stdin: flag('Keep stdin open for process_write (default: stdin is empty).'),
    tty: flag('Run it on a terminal, for programs that behave differently without one.'),
    shell: v.optional(
      v.pipe(
        v.picklist(['sh', 'bash']),
        v.description('"sh" (default) or "bash"; with "bash" the result has pipeline_status.'),
      ),
    ),
  }),
  process_output: v.object({
    process_id: processId,
    wait_timeout: v.optional(
      text('How long to wait for the exit first (default "10s"; "0s": do not wait).'),
    ),
    new_only: flag('Only output since you last read this process.'),
    offset: v.optional(count(0, LAST_BYTE, 'Read from this byte of the output, without waiting.')),
    max_bytes: v.optional(count(256, 1024 * 1024, 'Maximum output in the result.')),
    model_intent: intent,
  }),
  process_list: v.object({
    limit: v.optional(count(1, 100, 'Maximum number; running processes are always listed.')),
  }),
  process_signal: v.object({
    process_id: processId,
    signal: v.pipe(
      v.picklist(['terminate', 'kill']),
      v.description(
        '"terminate": SIGTERM, then SIGKILL after a grace period. "kill": SIGKILL at once.',
      ),
    ),
  }),
  process_wait: v.object({
    process_ids: v.pipe(
      v.array(v.string()),
      v.minLength(1),
      v.maxLength(64),
      v.description('Processes to wait for.'),
    ),
    text: v.optional(some('Wait until a line contains this text.')),
    pattern: v.optional(some('Wait until a line matches this regular expression.')),
    port: v.optional(count(1, 65_535, 'Wait until it listens on this port.')),
    silence: v.optional(some('Wait until it prints nothing for this long, such as "5s".')),
    mode: v.optional(
      v.pipe(
        v.picklist(['first', 'all']),
        v.description('Wait for the first process (default) or for all.'),
      ),
    ),
    wait_timeout: v.optional(text('Maximum time to wait (default "30s").')),
  }),
  process_write: v.object({
    process_id: processId,
    text: v.optional(text('Sent unchanged; end a line with \\n.')),
    eof: flag('Close stdin after the text (Ctrl-D).'),
    interrupt: flag('Press Ctrl-C first, then send the text.'),
    wait_timeout: v.optional(
      text('How long to wait for output in reply (default "2s"; "0s": do not wait).'),
    ),
  }),
  process_search: v.object({
    process_id: processId,
    pattern: some('Text to search for in all stored output.'),
    regex: flag('Treat pattern as a regular expression (default: plain text).'),
    ignore_case: flag('Case-insensitive.'),
    context: v.optional(count(0, 20, 'Lines before and after each match (default 2).')),
    limit: v.optional(count(1, 200, 'Maximum number of matches (default 20).')),
    offset: v.optional(count(0, LAST_BYTE, 'Start at this byte of the output.')),
  }),
  ...terminalInputs,
} as const;

export type ToolName = keyof typeof toolInputs;
export type ToolInput<Name extends ToolName> = v.InferOutput<(typeof toolInputs)[Name]>;
