// A line of output as pieces of text with their looks: colours of the program are kept, every other control sequence is left
// out, and what would be invisible or turn text around is shown.

import { visibleText } from './words.ts';

export interface Piece {
  readonly text: string;
  /** Names of classes: "f1" is the second of the 16 colours, "b" bold. */
  readonly look: string;
}

const SEQUENCE =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /\x1b(?:\[([\d;:]*)([\x20-\x2f]*[\x40-\x7e])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[\x20-\x2f]*[\x30-\x7e])/g;

export function piecesOf(line: string): Piece[] {
  if (!line.includes('\x1b')) return [{ text: showTabs(line), look: '' }];
  const pieces: Piece[] = [];
  const look = { fore: '', bold: '', dim: '', under: '' };
  let at = 0;
  const add = (text: string): void => {
    if (text !== '') pieces.push({ text: showTabs(text), look: lookText(look) });
  };
  for (const match of line.matchAll(SEQUENCE)) {
    add(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === 'm') apply(look, match[1] ?? '');
  }
  add(line.slice(at));
  return pieces;
}

interface Look {
  fore: string;
  bold: string;
  dim: string;
  under: string;
}

function apply(look: Look, text: string): void {
  const codes = text.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) Object.assign(look, { fore: '', bold: '', dim: '', under: '' });
    else if (code === 1) look.bold = 'b';
    else if (code === 2) look.dim = 'd';
    else if (code === 4) look.under = 'u';
    else if (code === 22) Object.assign(look, { bold: '', dim: '' });
    else if (code === 24) look.under = '';
    else if (code === 39) look.fore = '';
    else if (code >= 30 && code <= 37) look.fore = `f${code - 30}`;
    else if (code >= 90 && code <= 97) look.fore = `f${code - 82}`;
    else if (code === 38 || code === 48) {
      // Of 256 colours the first 16; others keep the plain one.
      const index = codes[at + 1] === 5 ? (codes[at + 2] ?? 16) : 16;
      if (code === 38) look.fore = index < 16 ? `f${index}` : '';
      at += codes[at + 1] === 5 ? 2 : 4;
    }
  }
}

function lookText({ fore, bold, dim, under }: Look): string {
  return [fore, bold, dim, under].filter(Boolean).join(' ');
}

function showTabs(text: string): string {
  return text.includes('\t') ? text.split('\t').map(visibleText).join('    ') : visibleText(text);
}
