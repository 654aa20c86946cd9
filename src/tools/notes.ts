// Notes: short advice beside an answer, given when what was seen calls for it.

import { shellTokens, type ShellToken } from './shell-tokens.ts';

export const notes = {
  running: 'process is still running',
  goesOn:
    'Nothing was ended: it goes on. process_wait answers as soon as it ends or prints what you look for.',
  polling:
    'Nothing new since your last reads. Do not ask again and again: process_wait answers when it ends, prints a text, opens a port or falls silent.',
  capped:
    'The wait was ended early because callers like this one give up after a minute; the process goes on.',
  readFiles:
    'To look at files, a tool made for reading files is better than printing them through the shell.',
  descendants:
    'It has ended, but processes it started are still alive under its id: process_signal ends them.',
  closedStdin:
    'It seems to ask for input, but its stdin is empty. Give the answer by options (such as --yes) or a pipe, or start it with stdin or tty and use process_write.',
  openStdin: 'It seems to wait for input: answer with process_write.',
  pipeline:
    'The exit code is that of the last part of the pipeline; the shell does not tell the others. With shell "bash" they are in pipeline_status.',
  runGoesOn:
    'Nothing was ended: it goes on. terminal_wait answers when it shows what you look for, terminal_keys ["C-c"] interrupts it.',
  incomplete:
    'The shell waits for the rest of the command: type it, or give up with terminal_keys ["C-c"].',
  untold:
    'What runs in this terminal does not tell the end of a command: see with terminal_read what it did.',
  endedAtOnce: 'It has ended already.',
} as const;

/** What programs print last when they want an answer, or complain about when they got none. */
const QUESTION =
  /(?:\[y(?:es)?\/n(?:o)?\]|\(y(?:es)?\/n(?:o)?(?:\/[^)]*)?\)|\bpass(?:word|phrase)\b[^\n]*:|\bcontinue\s*\?|\bproceed\s*\?|press (?:any key|enter|return)[^\n]*|\boverwrite\b[^\n]*\?|^\s*\?\s[^\n]*|\blog ?in:|\busername\b[^\n]*:)\s*$/i;
const NO_INPUT =
  /EOF when reading a line|EOFError|input device is not a TTY|inappropriate ioctl for device|stdin is not a (?:tty|terminal)|not a tty|could not read (?:Username|Password)|a terminal is required to read/i;

const LAST_WORDS = 600;

/** `ended`: a question that got an empty answer often ends the program with an error. */
export function wantsInput(output: string, ended: boolean): boolean {
  // The end decides, and of an endless line only its end.
  const last = output.slice(-LAST_WORDS).trimEnd().split('\n').slice(-3);
  if (ended && last.some((line) => NO_INPUT.test(line))) return true;
  return QUESTION.test(last.at(-1) ?? '');
}

const LIST_OPERATORS = new Set(['&&', '||', ';', '&']);

/** A command whose only work is to print files. */
export function dumpsFiles(command: string): boolean {
  return simpleCommands(shellTokens(command).tokens).some((tokens) => {
    if (tokens.some(({ kind, text }) => kind === 'operator' || text.startsWith('<<'))) return false;
    const words = tokens.map(({ text }) => text);
    const at = words.findIndex((word) => word !== 'sudo' && !/^\w+=/.test(word));
    const [program, ...rest] = at < 0 ? [] : words.slice(at);
    if (program === 'cat') return rest.some((word) => !word.startsWith('-'));
    if (program !== 'grep' && program !== 'rg') return false;
    return rest.includes('--include-all') || rest.includes('-l');
  });
}

function simpleCommands(tokens: readonly ShellToken[]): ShellToken[][] {
  const commands: ShellToken[][] = [[]];
  for (const token of tokens) {
    if (token.kind === 'newline' || LIST_OPERATORS.has(token.text)) commands.push([]);
    else commands.at(-1)?.push(token);
  }
  return commands.filter((command) => command.length > 0);
}

export function joinNotes(...given: (string | false | undefined)[]): { note?: string } {
  const said = given.filter((note) => typeof note === 'string');
  return said.length === 0 ? {} : { note: said.join(' ') };
}
