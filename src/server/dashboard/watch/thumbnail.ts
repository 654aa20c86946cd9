// A small picture of a terminal for the dashboard's wall: the rows that have changed since the last look, as runs of one
// colour. The page paints them; painting here would cost 17 ms a picture.

import type { ThumbnailLine, ThumbnailRun } from '../../../protocol/dashboard/thumbnail.ts';
import { gridRows, type Grid } from '../../../screen/emulator/grid.ts';
import { CELL_NUMBERS } from '../../../screen/emulator/xterm.ts';
import { runsOf, type Run } from '../../../screen/picture/cell-runs.ts';
import { darkTheme, lightTheme, type Theme } from '../../../screen/picture/theme.ts';

/** The extras of a grid without clusters, links and underline styles. */
const NO_EXTRAS_BYTES = 64;

export class Thumbnail {
  private readonly theme: Theme;
  private last: Grid | undefined;

  constructor(theme: 'dark' | 'light') {
    this.theme = theme === 'dark' ? darkTheme : lightTheme;
  }

  /** All lines the first time and after a change of the size. */
  changedLines(grid: Grid): ThumbnailLine[] {
    const { cols, rows } = grid;
    const before = this.last?.cols === cols && this.last.rows === rows ? this.last : undefined;
    this.last = grid;
    const numbers = Array.from({ length: rows }, (_each, row) => row).filter(
      (row) => !before || !isSameRow(before, grid, row),
    );
    if (numbers.length === 0) return [];
    // Cells of an extended grid are found by their number in all of it.
    const whole = numbers.length === rows || grid.extras.length > NO_EXTRAS_BYTES;
    const shown = gridRows(whole ? grid : partOf(grid, numbers));
    return numbers.map((row, index) => {
      const cells = shown.rows[whole ? row : index];
      return [row, cells ? this.runsOf(runsOf(cells, shown.styles, this.theme)) : []];
    });
  }

  /** Without what shows nothing. */
  private runsOf(runs: readonly Run[]): ThumbnailRun[] {
    const { background } = this.theme;
    return runs
      .filter(({ text, bg }) => bg !== background || text.trim() !== '')
      .map(({ col, cols, text, fg, bg, style }) => {
        const isBold = style.bold === true ? 1 : 0;
        return [col, cols, text, fg, bg === background ? -1 : bg, isBold];
      });
  }
}

function isSameRow(one: Grid, other: Grid, row: number): boolean {
  const from = row * other.cols * CELL_NUMBERS;
  const to = from + other.cols * CELL_NUMBERS;
  for (let at = from; at < to; at += 1) if (one.data[at] !== other.data[at]) return false;
  return true;
}

function partOf(grid: Grid, numbers: readonly number[]): Grid {
  const { cols } = grid;
  const length = cols * CELL_NUMBERS;
  const data = new Uint32Array(numbers.length * length);
  numbers.forEach((row, index) =>
    data.set(grid.data.subarray(row * length, (row + 1) * length), index * length),
  );
  const wrapped = Uint8Array.from(numbers, (row) => grid.wrapped[row] ?? 0);
  return { ...grid, rows: numbers.length, data, wrapped };
}
