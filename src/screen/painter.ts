// Paints what a screen shows: cells with their colours and lines, the cursor, a margin around it.

import type { Glyphs } from './glyphs.ts';
import type { Coverage } from './outline.ts';
import type { Cursor, Row, Snapshot, Style } from './snapshot.ts';
import { mix, paintOf } from './theme.ts';
import type { Rgb, Theme } from './theme.ts';

/** 0xrrggbb each, row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array;
}

export interface PaintOptions {
  readonly theme: Theme;
  readonly showCursor: boolean;
  /** Around the screen, in pixels. */
  readonly padding: number;
  /** How many shades a letter's edge has, beyond the letter's own colour. */
  readonly shades: number;
}

/** What of a snapshot is painted. */
export type Shown = Pick<Snapshot, 'cols' | 'rows' | 'rowsShown' | 'styles' | 'cursor'>;

export class Painter {
  private readonly glyphs: Glyphs;
  private readonly options: PaintOptions;

  constructor(glyphs: Glyphs, options: PaintOptions) {
    this.glyphs = glyphs;
    this.options = options;
  }

  /** The picture is as large as `cols` and `rows` need, whatever is shown of them. */
  paint(shown: Shown, cols = shown.cols, rows = shown.rows): Picture {
    const { cellWidth, cellHeight } = this.glyphs.metrics;
    const { padding, theme, showCursor } = this.options;
    const width = cols * cellWidth + 2 * padding;
    const height = rows * cellHeight + 2 * padding;
    const picture = {
      width,
      height,
      pixels: new Uint32Array(width * height).fill(theme.background),
    };
    shown.rowsShown.slice(0, rows).forEach((row, y) => {
      for (let x = 0; x < Math.min(row.chars.length, cols); x += 1) {
        const style = shown.styles[row.styles[x] ?? 0];
        if (style !== undefined) this.cell(picture, row, x, y, style);
      }
    });
    if (showCursor && shown.cursor.visible) this.cursor(picture, shown, shown.cursor);
    return picture;
  }

  private cell(picture: Picture, row: Row, x: number, y: number, style: Style): void {
    const text = row.chars[x] ?? ' ';
    // The second half of a wide character was painted with its first.
    if (text === '') return;
    const columns = row.chars[x + 1] === '' ? 2 : 1;
    const { fg, bg, underline } = paintOf(style, this.options.theme);
    const [left, top] = this.place(x, y);
    this.fill(picture, left, top, columns, bg);
    if (text !== ' ')
      this.ink(
        picture,
        left,
        top,
        this.glyphs.glyph(text, columns, style.bold === true, style.italic === true),
        fg,
        bg,
      );
    if (style.underline !== undefined || style.link !== undefined)
      this.underline(
        picture,
        left,
        top,
        columns,
        style,
        style.underline === undefined ? this.options.theme.link : underline,
      );
    const { baseline, line, cellWidth } = this.glyphs.metrics;
    const across = (at: number): void =>
      fillRect(picture, left, top + at, cellWidth * columns, line, fg);
    if (style.strikethrough === true) across(Math.round(baseline * 0.68));
    if (style.overline === true) across(0);
  }

  private cursor(picture: Picture, shown: Shown, cursor: Cursor): void {
    const { theme } = this.options;
    const col = Math.min(cursor.col, shown.cols - 1);
    const row = shown.rowsShown[cursor.row];
    if (row === undefined) return;
    const { cellWidth, cellHeight, line } = this.glyphs.metrics;
    const [left, top] = this.place(col, cursor.row);
    if (cursor.shape === 'bar')
      return fillRect(picture, left, top, line * 2, cellHeight, theme.cursor);
    if (cursor.shape === 'underline')
      return fillRect(
        picture,
        left,
        top + cellHeight - line * 2,
        cellWidth,
        line * 2,
        theme.cursor,
      );
    const text = row.chars[col] ?? ' ';
    const style = shown.styles[row.styles[col] ?? 0];
    const columns = row.chars[col + 1] === '' ? 2 : 1;
    this.fill(picture, left, top, columns, theme.cursor);
    if (text.trim() !== '' && style !== undefined)
      this.ink(
        picture,
        left,
        top,
        this.glyphs.glyph(text, columns, style.bold === true, style.italic === true),
        theme.background,
        theme.cursor,
      );
  }

  private place(x: number, y: number): [left: number, top: number] {
    const { cellWidth, cellHeight } = this.glyphs.metrics;
    return [this.options.padding + x * cellWidth, this.options.padding + y * cellHeight];
  }

  private fill(picture: Picture, left: number, top: number, columns: number, colour: Rgb): void {
    const { cellWidth, cellHeight } = this.glyphs.metrics;
    fillRect(picture, left, top, cellWidth * columns, cellHeight, colour);
  }

  private ink(
    picture: Picture,
    left: number,
    top: number,
    { width, height, alpha }: Coverage,
    fg: Rgb,
    bg: Rgb,
  ): void {
    const ramp = this.ramp(fg, bg);
    const { shades } = this.options;
    const right = Math.min(width, picture.width - left);
    for (let y = 0; y < height; y += 1) {
      const to = (top + y) * picture.width + left;
      for (let x = 0; x < right; x += 1) {
        const covered = alpha[y * width + x] ?? 0;
        if (covered > 0) picture.pixels[to + x] = ramp[Math.round((covered * shades) / 255)] ?? fg;
      }
    }
  }

  private readonly ramps = new Map<number, readonly Rgb[]>();
  private ramp(fg: Rgb, bg: Rgb): readonly Rgb[] {
    const key = fg * 0x1000000 + bg;
    let ramp = this.ramps.get(key);
    if (ramp === undefined) {
      const { shades } = this.options;
      ramp = Array.from({ length: shades + 1 }, (_, n) => mix(bg, fg, n / shades));
      if (this.ramps.size > 4096) this.ramps.clear();
      this.ramps.set(key, ramp);
    }
    return ramp;
  }

  private underline(
    picture: Picture,
    left: number,
    top: number,
    columns: number,
    style: Style,
    colour: Rgb,
  ): void {
    const { baseline, cellHeight, cellWidth, line } = this.glyphs.metrics;
    const width = cellWidth * columns;
    const at = top + Math.min(baseline + line + 1, cellHeight - line * 2);
    const kind = style.underline ?? 'dotted';
    if (kind === 'single') return fillRect(picture, left, at, width, line, colour);
    if (kind === 'double') {
      fillRect(picture, left, at - line, width, line, colour);
      return fillRect(picture, left, at + line, width, line, colour);
    }
    for (let x = 0; x < width; x += 1) {
      // Counted from the picture's edge, so that the pattern goes on from cell to cell.
      const phase = left + x;
      if (kind === 'curly') {
        const wave = Math.round(Math.sin((phase / cellWidth) * 2 * Math.PI) * line * 1.3);
        fillRect(picture, left + x, at + wave, 1, line, colour);
      } else {
        const [drawn, period] = kind === 'dotted' ? [line, line * 2] : [line * 3, line * 5];
        if (phase % period < drawn) fillRect(picture, left + x, at, 1, line, colour);
      }
    }
  }
}

function fillRect(
  picture: Picture,
  left: number,
  top: number,
  width: number,
  height: number,
  colour: Rgb,
): void {
  const right = Math.min(left + width, picture.width);
  for (let y = Math.max(0, top); y < Math.min(top + height, picture.height); y += 1)
    picture.pixels.fill(colour, y * picture.width + left, y * picture.width + right);
}
