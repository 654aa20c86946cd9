// Columns: aligned and cut to the width of a terminal, or separated by tabs for a program.

import { quote } from './terminal-text.ts';

const GAP = '  ';
/** The least width of the last column, however narrow the terminal. */
const FEWEST_COLUMNS = 10;

/** The first row is the heading; the last column takes what is left of the width. */
export function alignedRows(rows: readonly (readonly string[])[], width: number): string[] {
  const cells = rows.map((row) => row.map(quote));
  const columns = Math.max(...cells.map((row) => row.length));
  const widths = Array.from({ length: columns - 1 }, (_, column) =>
    Math.max(...cells.map((row) => displayWidth(row[column] ?? ''))),
  );
  const used = widths.reduce((total, each) => total + each + GAP.length, 0);
  const left = Math.max(FEWEST_COLUMNS, width - used);
  return cells.map((row) => {
    const front = widths.map((each, column) => padded(row[column] ?? '', each) + GAP);
    return (front.join('') + cut(row[columns - 1] ?? '', left)).trimEnd();
  });
}

export function tabbedRow(cells: readonly string[]): string {
  return cells.map(quote).join('\t');
}

export function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = '';
  let used = 0;
  for (const character of text) {
    used += displayWidth(character);
    if (used > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

// East Asian wide forms and pictures take two columns, marks that combine with the letter before none.
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const NARROWEST = /\p{Mark}|\p{Cf}/u;

function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (NARROWEST.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}
