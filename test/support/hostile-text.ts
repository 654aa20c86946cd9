// Hostile text for tests of what reaches a person's terminal, and a terminal that keeps what it was sent.

import { EventEmitter } from 'node:events';
import { runProgram } from '../../src/cli/program.ts';
import type { Place } from './command-line.ts';

export const hostile: Readonly<Record<string, string>> = {
  clear: '\x1b[2J',
  clipboard: '\x1b]52;c;aGk=\x07',
  title: '\x1b]0;root@bank\x1b\\',
  'device string': '\x1bPq\x1b\\',
  'application command': '\x1b_G\x1b\\',
  'answer back': '\x1b[c',
  colour: '\x1b[31m',
  'unfinished sequence': '\x1b[3',
  reset: '\x1bc',
  bell: '\x07',
  backspace: 'ok\b\bno',
  'line feed': 'a\nFAKE: b',
  'carriage return': 'a\rFAKE: b',
  'vertical tab': '\v',
  'form feed': '\f',
  'shift out': '\x0e',
  'unit separator': '\x1f',
  delete: '\x7f',
  'next line': '\u0085',
  'C1 sequence': '\u009b31m',
  'C1 title': '\u009d0;x\u009c',
  'right-to-left override': '\u202egnp.exe',
  'left-to-right override': '\u202d',
  'right-to-left embedding': '\u202b',
  'pop direction': '\u202c',
  'left-to-right isolate': '\u2066',
  'right-to-left isolate': '\u2067',
  'first strong isolate': '\u2068',
  'pop isolate': '\u2069',
  'Arabic letter mark': '\u061c',
  'right-to-left mark': '\u200f',
  'line separator': '\u2028',
  'paragraph separator': '\u2029',
  'zero-width space': 'a\u200bb',
  'zero-width joiner': 'a\u200db',
  'word joiner': '\u2060',
  'byte order mark': '\ufeff',
  'soft hyphen': '\u00ad',
  'interlinear anchor': '\ufff9',
  'invisible times': '\u2062',
  'tag letter': '\u{e0041}',
  'Hangul filler': '\u3164',
  'grapheme joiner': '\u034f',
};

/** Nothing of this may be raw in what we write, except the line ends and tabs of our own. */
const raw = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}|\u3164|\u034f/u;
/** In what a program printed, joiners are part of the text, and a carriage return is a progress bar's. */
// oxlint-disable-next-line no-control-regex
export const rawInOutput = /[\x00-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]/u;

class Terminal extends EventEmitter {
  readonly isTTY = true;
  readonly columns = 200;
  shown = '';

  write(data: string | Uint8Array): boolean {
    this.shown += typeof data === 'string' ? data : Buffer.from(data).toString();
    return true;
  }
}

/** Runs commands of one place as if both streams were a terminal, and looks for what is raw in what they send. */
export class Shown {
  /** The commands that were run. */
  readonly covered = new Set<string>();
  private readonly place: Place;
  private readonly more: NodeJS.ProcessEnv;

  constructor(place: Place, more: NodeJS.ProcessEnv = {}) {
    this.place = place;
    this.more = more;
  }

  /** What a terminal is sent by a command, both streams together. */
  async by(...args: string[]): Promise<string> {
    const terminal = new Terminal();
    const [command = '', ...rest] = args;
    this.covered.add(command);
    const { env: own, folder: cwd } = this.place;
    const env = { ...process.env, NO_COLOR: '1', XDG_STATE_HOME: cwd, ...own, ...this.more };
    await runProgram([command, ...rest], { env, cwd, stdout: terminal, stderr: terminal });
    return terminal.shown;
  }

  /** What a command shows a person, or answers as JSON, with something raw in it, or without anything at all. */
  async wrongOf(args: readonly string[], unfit = raw): Promise<string[]> {
    const [command = '', ...rest] = args;
    const shown = await this.by(...args);
    const json = await this.by(command, ...placed(command, rest));
    const answered = json.startsWith('{') && 'ok' in (JSON.parse(json) as object);
    const found = [
      ...(shown === '' || hasRaw(shown, unfit) ? [shown] : []),
      ...(!answered || hasRaw(json, raw) ? [json] : []),
    ];
    return found.map((text) => `${JSON.stringify(args)}: ${JSON.stringify(text)}`);
  }
}

function hasRaw(shown: string, unfit: RegExp): boolean {
  return unfit.test(shown.replaceAll(/[\n\t]/g, ''));
}

/** A word of `tty` goes before its flags. */
function placed(command: string, rest: readonly string[]): string[] {
  return command === 'tty'
    ? [...rest.slice(0, 1), '--json', ...rest.slice(1)]
    : ['--json', ...rest];
}
