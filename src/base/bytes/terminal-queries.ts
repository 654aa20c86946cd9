// What a program asks its terminal, and the answers that need no screen: which terminal it is, that it works, its size
// and its colours. No text of the program is ever part of an answer.

import { darkColours, x11Colour, type Rgb } from './terminal-colours.ts';
import { VERSION } from '../version.ts';

const ESC = 0x1b;
/** Of one cell, for programs that ask in pixels. */
export const CELL_PIXELS = { width: 9, height: 17 } as const;

/* oxlint-disable no-control-regex -- that is what they look for */
const QUERY = /\x1b(?:\[(0?c|>0?c|5n|>0?q|1[468]t)|\](4|1[0-2]);([\d;?]{1,64})(\x07|\x1b\\))/g;
/** The beginning of a query at the end of the bytes. */
const UNFINISHED = /\x1b(?:\[[>\d]{0,3}|\][\d;?]{0,67}\x1b?)?$/;
const LONGEST = 72;
const ANSWERS =
  /\x1b(?:\[\?1;2c|\[>[\d;]*c|\[0n|P>\|holdfast\([^)\x1b]*\)\x1b\\|\[[468];\d+;\d+t|\](?:4;\d+|1[0-2]);rgb:[\da-f/]+(?:\x07|\x1b\\))/g;
/* oxlint-enable no-control-regex */

export interface TerminalGrid {
  readonly cols: number;
  readonly rows: number;
}

/** Finds the queries in the output of one terminal, however it is cut. */
export class TerminalQueries {
  private unfinished = '';

  /** The answers to the queries that end in these bytes, in order. */
  answers(bytes: Buffer, grid: () => TerminalGrid): string[] {
    if (this.unfinished === '' && !bytes.includes(ESC)) return [];
    const text = this.unfinished + bytes.toString('latin1');
    const found: string[] = [];
    let end = 0;
    for (const match of text.matchAll(QUERY)) {
      const [whole, asked, osc, list = '', terminator = ''] = match;
      end = match.index + whole.length;
      if (asked !== undefined) found.push(answerTo(asked, grid));
      else found.push(...colours(Number(osc), list.split(';')).map((each) => each + terminator));
    }
    this.unfinished = UNFINISHED.exec(text.slice(Math.max(end, text.length - LONGEST)))?.[0] ?? '';
    return found;
  }
}

/** What is left of a terminal's answers where the keeper gives those that need no screen. */
export function answersOfScreen(answers: string): string {
  return answers.replace(ANSWERS, '');
}

function answerTo(asked: string, grid: () => TerminalGrid): string {
  switch (asked) {
    case 'c':
    case '0c':
      // A VT100 with advanced video, as xterm.js answers.
      return '\x1b[?1;2c';
    case '>c':
    case '>0c':
      return '\x1b[>0;276;0c';
    case '5n':
      return '\x1b[0n';
    case '>q':
    case '>0q':
      return `\x1bP>|holdfast(${VERSION})\x1b\\`;
    default: {
      const { cols, rows } = grid();
      const { width, height } = CELL_PIXELS;
      if (asked === '14t') return `\x1b[4;${rows * height};${cols * width}t`;
      return asked === '16t' ? `\x1b[6;${height};${width}t` : `\x1b[8;${rows};${cols}t`;
    }
  }
}

/** Each colour that is asked for, without its terminator: "10;?;?" asks for 10 and 11, "4;1;?;2;?" for 1 and 2. */
function colours(code: number, list: readonly string[]): string[] {
  const { foreground, background, cursor, palette } = darkColours;
  const answer = (name: string, colour: Rgb | undefined): string[] =>
    colour === undefined ? [] : [`\x1b]${name};${x11Colour(colour)}`];
  if (code !== 4)
    return list.flatMap((word, at) =>
      word === '?' ? answer(`${code + at}`, [foreground, background, cursor][code + at - 10]) : [],
    );
  return list.flatMap((word, at) => {
    const index = list[at - 1] ?? '';
    const asks = at % 2 === 1 && word === '?' && /^\d{1,3}$/.test(index);
    return asks ? answer(`4;${Number(index)}`, palette[Number(index)]) : [];
  });
}
