// What the tools take. The words on each field are what a model reads.

import * as v from 'valibot';
import { terminalInputs } from './terminal-inputs.ts';

const text = (about: string) => v.pipe(v.string(), v.description(about));
const some = (about: string) => v.pipe(v.string(), v.minLength(1), v.description(about));
const flag = (about: string) => v.optional(v.pipe(v.boolean(), v.description(about)));
const count = (least: number, most: number, about: string) =>
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most), v.description(about));

const intent = v.optional(
  text(
    'A few words, as "Running the tests", shown to the user alongside the command. Under 100 characters, without the command itself.',
  ),
);
const processId = some('The id that execute or process_list gave.');
const LAST_BYTE = 2 ** 48 - 1;

export const toolInputs = {
  execute: v.object({
    command: some('The command, run by a POSIX shell as "sh -c". Do not end it with "&".'),
    model_intent: intent,
    timeout: v.optional(
      text(
        'How long to wait for the end, as "30s" or "5m" (default "10s"). When it is over the process goes on and the answer has its id.',
      ),
    ),
    workdir: v.optional(some('Directory to run in.')),
    run_in_background: flag(
      'Answer at once and let it run: for servers and watchers, or to do something else meanwhile.',
    ),
    stdin: flag('Keep stdin open for process_write. Otherwise stdin is empty.'),
    tty: flag('Give it a terminal: for programs that behave differently without one.'),
    shell: v.optional(
      v.pipe(
        v.picklist(['sh', 'bash']),
        v.description('"bash" for bash scripts; the answer then has the statuses of a pipeline.'),
      ),
    ),
  }),
  process_output: v.object({
    process_id: processId,
    wait_timeout: v.optional(
      text('How long to wait for the end first (default "10s"; "0s" does not wait).'),
    ),
    new_only: flag('Only what was printed since you last read this process.'),
    offset: v.optional(
      count(0, LAST_BYTE, 'Read from this byte of the output on, without waiting.'),
    ),
    max_bytes: v.optional(count(256, 1024 * 1024, 'Largest output in the answer.')),
    model_intent: intent,
  }),
  process_list: v.object({
    limit: v.optional(count(1, 100, 'How many at most; running ones are always listed.')),
  }),
  process_signal: v.object({
    process_id: processId,
    signal: v.pipe(
      v.picklist(['terminate', 'kill']),
      v.description('"terminate": SIGTERM, and SIGKILL after a grace. "kill": SIGKILL at once.'),
    ),
  }),
  process_wait: v.object({
    process_ids: v.pipe(
      v.array(v.string()),
      v.minLength(1),
      v.maxLength(64),
      v.description('Which processes to wait for.'),
    ),
    text: v.optional(some('Until a line has this text.')),
    pattern: v.optional(some('Until a line matches this regular expression.')),
    port: v.optional(count(1, 65_535, 'Until it listens on this port.')),
    silence: v.optional(some('Until it has printed nothing for so long, as "5s".')),
    mode: v.optional(
      v.pipe(
        v.picklist(['first', 'all']),
        v.description('Wait for the first of them (default), or for all.'),
      ),
    ),
    wait_timeout: v.optional(text('How long to wait at most (default "30s").')),
  }),
  process_write: v.object({
    process_id: processId,
    text: v.optional(text('Sent as it is: end a line with \\n.')),
    eof: flag('Close stdin after the text (Ctrl-D).'),
    interrupt: flag('Press Ctrl-C before the text is sent.'),
    wait_timeout: v.optional(
      text('How long to wait for what it prints in answer (default "2s"; "0s" does not wait).'),
    ),
  }),
  process_search: v.object({
    process_id: processId,
    pattern: some('What to look for in all that is kept of the output.'),
    regex: flag('The pattern is a regular expression, not plain text.'),
    ignore_case: flag('Capital and small letters are the same.'),
    context: v.optional(count(0, 20, 'Lines before and after each hit (default 2).')),
    limit: v.optional(count(1, 200, 'Hits at most (default 20).')),
    offset: v.optional(count(0, LAST_BYTE, 'Begin at this byte of the output.')),
  }),
  ...terminalInputs,
} as const;

export type ToolName = keyof typeof toolInputs;
export type ToolInput<Name extends ToolName> = v.InferOutput<(typeof toolInputs)[Name]>;
