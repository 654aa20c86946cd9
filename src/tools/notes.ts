// Notes: short advice beside an answer.

import { shellTokens, type ShellToken } from './shell/tokens.ts';

export const notes = {
  running: 'process is still running',
  goesOn: 'It keeps running. process_wait returns as soon as it exits or prints a text.',
  polling:
    'No new output since your last reads. Do not poll: process_wait returns when it exits, prints a text, opens a port or stops printing.',
  capped:
    'The wait was cut short because clients like this one time out after a minute; the process keeps running.',
  readFiles: 'To read files, use a file-reading tool instead of the shell.',
  descendants:
    'It has exited, but processes it started are still running: stop them with process_signal and its id.',
  closedStdin:
    'It seems to ask for input, but its stdin is empty. Answer with an option (such as --yes) or a pipe, or start it with stdin or tty and use process_write.',
  openStdin: 'It seems to wait for input: answer with process_write.',
  pipeline:
    'The exit code is that of the last command of the pipeline. With shell "bash", pipeline_status has all of them.',
  runGoesOn:
    'It keeps running. terminal_wait returns when it shows a text; terminal_keys ["C-c"] interrupts it.',
  incomplete:
    'The command is incomplete and the shell waits for the rest: type it, or cancel with terminal_keys ["C-c"].',
  notTyped: (busyWith: string): string =>
    `The command was not typed and will not run: the terminal is busy with ${busyWith}. Wait for it, or interrupt it with terminal_keys ["C-c"].`,
  notExecuted: 'The shell did not run the command: see its message.',
  entered: (shell: string): string =>
    `The command has no exit code: it started ${shell}, which now reads this terminal. The next command goes there.`,
  cleared: 'Text at the prompt was cleared first.',
  completionUnknown:
    'This program does not report when a command finishes: use terminal_read to see the result.',
  boxes: (characters: number): string =>
    `${characters} different characters are empty boxes in the picture: no font has them. terminal_read shows them as text.`,
  limited: (words: string): string => `A limit: ${words}.`,
  cost: (words: string): string => `It used ${words}.`,
  weak: (words: string): string => `Confinement: ${words}.`,
  endedAtOnce: 'It has already exited.',
  promoted: 'It runs in the background without the "&"; process_wait can wait for it.',
  /** Always last: clients that shorten an answer drop its middle, and the mark in the output with it. */
  shortened: (call: string) => `The output was truncated: ${call} fetches the rest.`,
} as const;

/** What programs print last when they ask a question, or when they got no input. */
const QUESTION =
  /(?:\[y(?:es)?\/n(?:o)?\]|\(y(?:es)?\/n(?:o)?(?:\/[^)]*)?\)|\bpass(?:word|phrase)\b[^\n]*:|\bcontinue\s*\?|\bproceed\s*\?|press (?:any key|enter|return)[^\n]*|\boverwrite\b[^\n]*\?|^\s*\?\s[^\n]*|\blog ?in:|\busername\b[^\n]*:)\s*$/i;
const NO_INPUT =
  /EOF when reading a line|EOFError|input device is not a TTY|inappropriate ioctl for device|stdin is not a (?:tty|terminal)|not a tty|could not read (?:Username|Password)|a terminal is required to read/i;

const LAST_WORDS = 600;

/** `ended`: a program often exits with an error after an empty answer. */
export function asksForInput(output: string, ended: boolean): boolean {
  // Only the end counts, even of a very long line.
  const last = output.slice(-LAST_WORDS).trimEnd().split('\n').slice(-3);
  if (ended && last.some((line) => NO_INPUT.test(line))) return true;
  return QUESTION.test(last.at(-1) ?? '');
}

const LIST_OPERATORS = new Set(['&&', '||', ';', '&']);

/** Whether a command only prints files. */
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
  const sentences = said.map((note, index) =>
    index < said.length - 1 && !/[.!?]$/.test(note) ? `${note}.` : note,
  );
  return said.length === 0 ? {} : { note: sentences.join(' ') };
}
