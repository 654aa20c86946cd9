// Answers to terminal queries of programs: identity, state, cursor, colours and size. Answers consist of our own text
// and numbers only. Text from the program is never sent back, so that output can never become input.

import { CELL_PIXELS } from '../../base/bytes/terminal-queries.ts';
import { darkColours, x11Colour } from '../../base/bytes/terminal-colours.ts';
import { VERSION } from '../../base/version.ts';
import { GROUND } from './xterm.ts';
import type { Parser, Xterm } from './xterm.ts';

/** A program that asks more than this at once does not read the answers. */
const MAX_ANSWERS = 64;
const QUERY_COLOUR = 0;
const FOREGROUND = 256;
const BACKGROUND = 257;
const CURSOR = 258;
const COLOUR_CODES: Readonly<Record<number, number>> = {
  [FOREGROUND]: 10,
  [BACKGROUND]: 11,
  [CURSOR]: 12,
};

export class Answers {
  private readonly parser: Parser;
  private waiting: string[] = [];
  /** Answers to queries whose terminator is not known yet: BEL, or ESC and a backslash that may still come. */
  private unterminated: string[] = [];

  constructor({ terminal, inner }: Xterm) {
    this.parser = inner._inputHandler._parser;
    terminal.onData((answer) => this.add(answer));
    inner._inputHandler.onColor((requests) => {
      for (const { type, index } of requests)
        if (type === QUERY_COLOUR && this.hasCapacity())
          this.unterminated.push(colourAnswer(index));
    });
    // An answer has the terminator of its query. This handler runs right after such a query.
    this.parser.registerEscHandler({ final: '\\' }, () => {
      this.end('\x1b\\');
      return false;
    });
    this.parser.registerCsiHandler({ prefix: '>', final: 'q' }, () => {
      this.add(`\x1bP>|holdfast(${VERSION})\x1b\\`);
      return true;
    });
    this.parser.registerCsiHandler({ final: 't' }, ({ params }) => {
      const { cols, rows } = terminal;
      const { width, height } = CELL_PIXELS;
      if (params[0] === 14) this.add(`\x1b[4;${rows * height};${cols * width}t`);
      if (params[0] === 16) this.add(`\x1b[6;${height};${width}t`);
      if (params[0] === 18) this.add(`\x1b[8;${rows};${cols}t`);
      // The title (20, 21) is never reported.
      return false;
    });
  }

  /** The answers since the last call. */
  take(): string[] {
    if (this.parser.currentState === GROUND) this.end('\x07');
    const taken = this.waiting;
    this.waiting = [];
    return taken;
  }

  private add(answer: string): void {
    this.end('\x07');
    if (this.hasCapacity()) this.waiting.push(answer);
  }

  private end(terminator: string): void {
    for (const answer of this.unterminated)
      if (answer !== '') this.waiting.push(answer + terminator);
    this.unterminated = [];
  }

  private hasCapacity(): boolean {
    return this.waiting.length + this.unterminated.length < MAX_ANSWERS;
  }
}

function colourAnswer(index: number): string {
  const code = COLOUR_CODES[index];
  const { foreground, background, cursor, palette } = darkColours;
  const value =
    code === undefined
      ? palette[index]
      : { [FOREGROUND]: foreground, [BACKGROUND]: background, [CURSOR]: cursor }[index];
  if (value === undefined) return '';
  return `\x1b]${code === undefined ? `4;${index}` : code};${x11Colour(value)}`;
}
