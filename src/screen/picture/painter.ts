// Paints a screen: cells with colours and lines, the cursor, a margin.

import { Canvas } from './canvas.ts';
import type { Picture } from './canvas.ts';
import type { Glyphs } from './glyphs.ts';
import type { Coverage } from './outline.ts';
import type { Row, Snapshot, Style } from '../view/snapshot.ts';
import type { Rgb } from '../../base/bytes/terminal-colours.ts';
import { mix, paintOf } from './theme.ts';
import type { Theme } from './theme.ts';

export interface PaintOptions {
  readonly theme: Theme;
  readonly showCursor: boolean;
  /** The margin, in pixels. */
  readonly padding: number;
  /** The number of shades at a letter's edge. */
  readonly shades: number;
}

/** The parts of a snapshot that are painted. */
export type Shown = Pick<Snapshot, 'cols' | 'rows' | 'rowsShown' | 'styles' | 'cursor'>;

/** One character with its position; a wide one covers two cells. */
interface Cell {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly text: string;
  readonly columns: number;
  readonly style: Style;
}

const MAX_RAMPS = 4096;

export class Painter {
  /** Characters that were painted as boxes, because no font has them. */
  readonly missing = new Set<string>();
  private readonly glyphs: Glyphs;
  private readonly options: PaintOptions;
  private readonly ramps = new Map<number, readonly Rgb[]>();

  constructor(glyphs: Glyphs, options: PaintOptions) {
    this.glyphs = glyphs;
    this.options = options;
  }

  /** The picture has the size of `cols` and `rows`, however much is shown. */
  paint(shown: Shown, cols = shown.cols, rows = shown.rows): Picture {
    const { cellWidth, cellHeight } = this.glyphs.metrics;
    const { padding, theme, showCursor } = this.options;
    const width = cols * cellWidth + 2 * padding;
    const canvas = new Canvas(width, rows * cellHeight + 2 * padding, theme.background);
    shown.rowsShown.slice(0, rows).forEach((row, y) => {
      for (let x = 0; x < Math.min(row.chars.length, cols); x += 1) {
        const cell = this.cellAt(row, x, y, shown.styles);
        // The second half of a wide character is painted with the first.
        if (cell !== undefined && cell.text !== '') this.paintCell(canvas, cell);
      }
    });
    if (showCursor && shown.cursor.visible) this.paintCursor(canvas, shown);
    return canvas;
  }

  private cellAt(row: Row, x: number, y: number, styles: readonly Style[]): Cell | undefined {
    const style = styles[row.styles[x] ?? 0];
    if (style === undefined) return undefined;
    const { cellWidth, cellHeight } = this.glyphs.metrics;
    const columns = row.chars[x + 1] === '' ? 2 : 1;
    return {
      left: this.options.padding + x * cellWidth,
      top: this.options.padding + y * cellHeight,
      width: cellWidth * columns,
      height: cellHeight,
      text: row.chars[x] ?? ' ',
      columns,
      style,
    };
  }

  private paintCell(canvas: Canvas, cell: Cell): void {
    const { style, left, top, width } = cell;
    const { theme } = this.options;
    const { fg, bg, underline } = paintOf(style, theme);
    canvas.fillRect(cell, bg);
    if (cell.text !== ' ') canvas.drawGlyph(left, top, this.glyphOf(cell), this.ramp(fg, bg));
    if (style.underline !== undefined) this.underline(canvas, cell, underline);
    else if (style.link !== undefined) this.underline(canvas, cell, theme.link);
    const { baseline, line } = this.glyphs.metrics;
    if (style.strikethrough === true)
      canvas.fillRect({ left, top: top + Math.round(baseline * 0.68), width, height: line }, fg);
    if (style.overline === true) canvas.fillRect({ left, top, width, height: line }, fg);
  }

  private paintCursor(canvas: Canvas, { cursor, cols, rowsShown, styles }: Shown): void {
    const { theme } = this.options;
    const row = rowsShown[cursor.row];
    const cell = row && this.cellAt(row, Math.min(cursor.col, cols - 1), cursor.row, styles);
    if (cell === undefined) return;
    const thick = this.glyphs.metrics.line * 2;
    if (cursor.shape === 'bar') return canvas.fillRect({ ...cell, width: thick }, theme.cursor);
    if (cursor.shape === 'underline')
      return canvas.fillRect(
        { ...cell, top: cell.top + cell.height - thick, height: thick },
        theme.cursor,
      );
    canvas.fillRect(cell, theme.cursor);
    const ramp = this.ramp(theme.background, theme.cursor);
    if (cell.text.trim() !== '') canvas.drawGlyph(cell.left, cell.top, this.glyphOf(cell), ramp);
  }

  private glyphOf({ text, columns, style }: Cell): Coverage {
    const glyph = this.glyphs.glyph(text, columns, style.bold === true, style.italic === true);
    if (this.glyphs.missing.has(text)) this.missing.add(text);
    return glyph;
  }

  private ramp(fg: Rgb, bg: Rgb): readonly Rgb[] {
    const key = fg * 0x1000000 + bg;
    let ramp = this.ramps.get(key);
    if (ramp === undefined) {
      const { shades } = this.options;
      ramp = Array.from({ length: shades + 1 }, (_, n) => mix(bg, fg, n / shades));
      if (this.ramps.size >= MAX_RAMPS) this.ramps.clear();
      this.ramps.set(key, ramp);
    }
    return ramp;
  }

  /** A link without an underline of its own is dotted. */
  private underline(canvas: Canvas, { left, top, width, height, style }: Cell, colour: Rgb): void {
    const { baseline, cellWidth, line } = this.glyphs.metrics;
    const at = top + Math.min(baseline + line + 1, height - line * 2);
    const kind = style.underline ?? 'dotted';
    const stroke = (y: number): void =>
      canvas.fillRect({ left, top: y, width, height: line }, colour);
    if (kind === 'single') return stroke(at);
    if (kind === 'double') {
      stroke(at - line);
      return stroke(at + line);
    }
    for (let x = left; x < left + width; x += 1) {
      // Counted from the picture's edge, so that the pattern continues from cell to cell.
      const wave = Math.round(Math.sin((x / cellWidth) * 2 * Math.PI) * line * 1.3);
      const [drawn, period] = kind === 'dotted' ? [line, line * 2] : [line * 3, line * 5];
      const y = kind === 'curly' ? at + wave : at;
      if (kind === 'curly' || x % period < drawn)
        canvas.fillRect({ left: x, top: y, width: 1, height: line }, colour);
    }
  }
}
