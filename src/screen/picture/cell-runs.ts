// A row of cells as runs of the same style, for SVG and HTML.

import type { Row, Style } from '../view/snapshot.ts';
import type { Rgb } from '../../base/bytes/terminal-colours.ts';
import { paintOf } from './theme.ts';
import type { Theme } from './theme.ts';

export interface Run {
  readonly col: number;
  readonly cols: number;
  readonly text: string;
  readonly style: Style;
  readonly fg: Rgb;
  readonly bg: Rgb;
  /** For `text-decoration`; empty for none. */
  readonly decoration: string;
}

const PLAIN: Style = { fg: 'default', bg: 'default' };
const SINGLE_WIDTH = /^[\x20-\x7e\u00a0-\u024f\u2500-\u259f]+$/;

export function runsOf(row: Row, styles: readonly Style[], theme: Theme): Run[] {
  const runs: { col: number; cols: number; text: string; number: number; single: boolean }[] = [];
  row.chars.forEach((char, col) => {
    const number = row.styles[col] ?? 0;
    const single = SINGLE_WIDTH.test(char);
    const last = runs.at(-1);
    if (char === '' && last !== undefined) last.cols += 1;
    // Characters whose width may differ in the viewer's font are runs of their own, so that they shift nothing.
    else if (last?.number === number && single && last.single) {
      last.text += char;
      last.cols += 1;
    } else runs.push({ col, cols: 1, text: char, number, single });
  });
  return runs.map(({ col, cols, text, number }) => {
    const style = styles[number] ?? PLAIN;
    const { fg, bg } = paintOf(style, theme);
    return { col, cols, text, style, fg, bg, decoration: decorationOf(style) };
  });
}

const LINES = {
  single: 'solid',
  double: 'double',
  curly: 'wavy',
  dotted: 'dotted',
  dashed: 'dashed',
} as const;

function decorationOf(style: Style): string {
  const lines = [
    ...(style.underline === undefined && style.link === undefined ? [] : ['underline']),
    ...(style.strikethrough === true ? ['line-through'] : []),
    ...(style.overline === true ? ['overline'] : []),
  ];
  if (lines.length === 0) return '';
  return `${lines.join(' ')} ${style.underline === undefined ? 'solid' : LINES[style.underline]}`;
}
