// The inputs of the terminal tools. Models read the descriptions.

import * as v from 'valibot';
import { anyText, between, flag, text } from '../schema-fields.ts';

const cells = (about: string) => v.optional(between(2, 1000, about));
const terminalId = text('The id from terminal_open.');

export const terminalInputs = {
  terminal_open: v.object({
    command: v.optional(
      text('Program to run, such as "vim notes.txt" or "python3" (default: a shell).'),
    ),
    workdir: v.optional(text('Working directory.')),
    cols: cells('Width in characters (default 80).'),
    rows: cells('Height in lines (default 24).'),
    model_intent: v.optional(anyText('A short description for the user.')),
  }),
  terminal_run: v.object({
    terminal_id: terminalId,
    command: text('Typed unchanged at the prompt of the shell; several lines are one command.'),
    timeout: v.optional(
      anyText(
        'How long to wait for the exit (default "10s"). Afterwards the command keeps running.',
      ),
    ),
  }),
  terminal_keys: v.object({
    terminal_id: terminalId,
    text: v.optional(anyText('Text to type first, unchanged.')),
    paste: flag('Paste the text instead of typing it: for several lines.'),
    keys: v.optional(
      v.pipe(
        v.array(v.string()),
        v.minLength(1),
        v.maxLength(256),
        v.description('Keys to press after the text: "Enter", "Up", "F5", "C-c", "alt+x".'),
      ),
    ),
    wait_timeout: v.optional(
      anyText(
        'How long to wait for the screen to stop changing (default "1s"; "0s": do not wait).',
      ),
    ),
  }),
  terminal_wait: v.object({
    terminal_id: terminalId,
    text: v.optional(text('Wait until the screen shows this text.')),
    pattern: v.optional(text('Wait until the screen matches this regular expression.')),
    gone: flag('Wait until the text or pattern is gone.'),
    scrolled: flag(
      'Search all output, including what scrolled away (default: the visible screen).',
    ),
    stable: v.optional(
      text('Wait until the screen has not changed for this long, such as "500ms".'),
    ),
    wait_timeout: v.optional(anyText('Maximum time to wait (default "30s").')),
  }),
  terminal_read: v.object({
    terminal_id: terminalId,
    scrollback: flag('Include lines that have scrolled away.'),
  }),
  terminal_screenshot: v.object({
    terminal_id: terminalId,
    theme: v.optional(text('Color theme of the picture.')),
  }),
  terminal_close: v.object({ terminal_id: terminalId }),
} as const;
