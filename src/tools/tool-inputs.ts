// The inputs of the tools. Models read the descriptions.

import * as v from 'valibot';
import { anyText, between, flag, text } from './schema-fields.ts';
import { terminalInputs } from './terminal/inputs.ts';

const intent = v.optional(
  anyText(
    'A short description, such as "Running the tests", shown to the user alongside the command. Under 100 characters.',
  ),
);
const processId = text('The id from execute or process_list.');
const LAST_BYTE = 2 ** 48 - 1;

export const toolInputs = {
  execute: v.object({
    command: text('Command for a POSIX shell (sh -c). Do not end it with "&".'),
    model_intent: intent,
    timeout: v.optional(
      anyText(
        'How long to wait for the exit: "30s", "5m" (default "10s"). Afterwards the command keeps running and the result has its id.',
      ),
    ),
    workdir: v.optional(text('Working directory.')),
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
      anyText('How long to wait for the exit first (default "10s"; "0s": do not wait).'),
    ),
    new_only: flag('Only output since you last read this process.'),
    offset: v.optional(
      between(0, LAST_BYTE, 'Read from this byte of the output, without waiting.'),
    ),
    max_bytes: v.optional(between(256, 1024 * 1024, 'Maximum output in the result.')),
    model_intent: intent,
  }),
  process_list: v.object({
    limit: v.optional(between(1, 100, 'Maximum number; running processes are always listed.')),
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
    text: v.optional(text('Wait until a line contains this text.')),
    pattern: v.optional(text('Wait until a line matches this regular expression.')),
    port: v.optional(between(1, 65_535, 'Wait until it listens on this port.')),
    silence: v.optional(text('Wait until it prints nothing for this long, such as "5s".')),
    mode: v.optional(
      v.pipe(
        v.picklist(['first', 'all']),
        v.description('Wait for the first process (default) or for all.'),
      ),
    ),
    wait_timeout: v.optional(anyText('Maximum time to wait (default "30s").')),
  }),
  process_write: v.object({
    process_id: processId,
    text: v.optional(anyText('Sent unchanged; end a line with \\n.')),
    eof: flag('Close stdin after the text (Ctrl-D).'),
    interrupt: flag('Press Ctrl-C first, then send the text.'),
    wait_timeout: v.optional(
      anyText('How long to wait for output in reply (default "2s"; "0s": do not wait).'),
    ),
  }),
  process_search: v.object({
    process_id: processId,
    pattern: text('Text to search for in all stored output.'),
    regex: flag('Treat pattern as a regular expression (default: plain text).'),
    ignore_case: flag('Case-insensitive.'),
    context: v.optional(between(0, 20, 'Lines before and after each match (default 2).')),
    limit: v.optional(between(1, 200, 'Maximum number of matches (default 20).')),
    offset: v.optional(between(0, LAST_BYTE, 'Start at this byte of the output.')),
  }),
  ...terminalInputs,
} as const;

export type ToolName = keyof typeof toolInputs;
export type ToolInput<Name extends ToolName> = v.InferOutput<(typeof toolInputs)[Name]>;
