// What the terminal answers when a program asks it something: who it is, how it is, where its cursor is, its colours and
// size. Every answer is made of our own words and numbers; text that came from the program is never sent back to it, so
// that nothing a program prints can become something it seems to have been typed.

import { CELL_PIXELS } from '../../base/bytes/terminal-queries.ts';
import { darkColours, x11Colour } from '../../base/bytes/terminal-colours.ts';
import { VERSION } from '../../base/version.ts';
import { GROUND } from './xterm.ts';
import type { Parser, Xterm } from './xterm.ts';

/** A program that asks more than this at once wants no answers. */
const MAX_ANSWERS = 64;
const ASKS_COLOUR = 0;
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
  /** Answers to a question whose end has not been seen: it may be BEL, or ESC and a backslash that is yet to come. */
  private unended: string[] = [];

  constructor({ terminal, inner }: Xterm) {
    this.parser = inner._inputHandler._parser;
    terminal.onData((answer) => this.add(answer));
    inner._inputHandler.onColor((requests) => {
      for (const { type, index } of requests)
        if (type === ASKS_COLOUR && this.hasRoom()) this.unended.push(colour(index));
    });
    // The answer ends as the question did. This comes after the question itself, when it ended so.
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
      // The title (20, 21) is never told.
      return false;
    });
  }

  /** What was answered since it was last asked. */
  take(): string[] {
    if (this.parser.currentState === GROUND) this.end('\x07');
    const taken = this.waiting;
    this.waiting = [];
    return taken;
  }

  private add(answer: string): void {
    this.end('\x07');
    if (this.hasRoom()) this.waiting.push(answer);
  }

  private end(terminator: string): void {
    for (const answer of this.unended) if (answer !== '') this.waiting.push(answer + terminator);
    this.unended = [];
  }

  private hasRoom(): boolean {
    return this.waiting.length + this.unended.length < MAX_ANSWERS;
  }
}

function colour(index: number): string {
  const code = COLOUR_CODES[index];
  const { foreground, background, cursor, palette } = darkColours;
  const value =
    code === undefined
      ? palette[index]
      : { [FOREGROUND]: foreground, [BACKGROUND]: background, [CURSOR]: cursor }[index];
  if (value === undefined) return '';
  return `\x1b]${code === undefined ? `4;${index}` : code};${x11Colour(value)}`;
}
