// What the tools for terminals take. The words on each field are what a model reads.

import * as v from 'valibot';

const text = (about: string) => v.pipe(v.string(), v.description(about));
const some = (about: string) => v.pipe(v.string(), v.minLength(1), v.description(about));
const flag = (about: string) => v.optional(v.pipe(v.boolean(), v.description(about)));
const cells = (about: string) =>
  v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(1000), v.description(about)),
  );

const terminalId = some('The id that terminal_open gave.');

export const terminalInputs = {
  terminal_open: v.object({
    command: v.optional(
      some('A program to run in it, as "vim notes.txt" or "python3". Without it: a shell.'),
    ),
    workdir: v.optional(some('Directory to begin in.')),
    cols: cells('Width in characters (default 80).'),
    rows: cells('Height in lines (default 24).'),
    model_intent: v.optional(text('A few words for the user on what it is for.')),
  }),
  terminal_run: v.object({
    terminal_id: terminalId,
    command: some('Typed at the prompt of the shell, as it is; several lines are one command.'),
    timeout: v.optional(
      text('How long to wait for its end (default "10s"). When it is over the command goes on.'),
    ),
  }),
  terminal_keys: v.object({
    terminal_id: terminalId,
    text: v.optional(text('Typed first, as it is.')),
    paste: flag('Give the text as a paste: for several lines into an editor or a prompt.'),
    keys: v.optional(
      v.pipe(
        v.array(v.string()),
        v.minLength(1),
        v.maxLength(256),
        v.description('Pressed behind the text, by name: "Enter", "Up", "F5", "C-c", "alt+x".'),
      ),
    ),
    wait_timeout: v.optional(
      text('How long to wait for the screen to come to rest (default "1s"; "0s" does not wait).'),
    ),
  }),
  terminal_wait: v.object({
    terminal_id: terminalId,
    text: v.optional(some('Until the screen shows this text.')),
    pattern: v.optional(some('Until the screen matches this regular expression.')),
    gone: flag('Until the text or pattern is no longer there.'),
    scrolled: flag('Look in everything that was printed, not only in what is still visible.'),
    stable: v.optional(some('Until the screen has not changed for so long, as "500ms".')),
    wait_timeout: v.optional(text('How long to wait at most (default "30s").')),
  }),
  terminal_read: v.object({
    terminal_id: terminalId,
    scrollback: flag('With the lines that have scrolled away.'),
  }),
  terminal_screenshot: v.object({
    terminal_id: terminalId,
    theme: v.optional(some('Colours of the picture.')),
  }),
  terminal_close: v.object({ terminal_id: terminalId }),
} as const;
