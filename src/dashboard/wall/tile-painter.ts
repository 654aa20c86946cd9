// Paints a terminal into a small canvas: only lines that changed are drawn again.

import type { ThumbnailMessage, ThumbnailRun } from '../../protocol/dashboard/thumbnail.ts';
import { darkTheme, hexOf, lightTheme } from '../../screen/picture/theme.ts';

/** Of the width of a cell to its height, and of the font to the height. */
const CELL_RATIO = 0.5;
const FONT_RATIO = 0.82;

export class TilePainter {
  private readonly canvas: HTMLCanvasElement;
  private readonly background: string;
  private readonly foreground: string;
  private lines = new Map<number, readonly ThumbnailRun[]>();
  private cols = 0;
  private rows = 0;
  private cursor: ThumbnailMessage['cursor'];

  constructor(canvas: HTMLCanvasElement, isDark: boolean) {
    this.canvas = canvas;
    const theme = isDark ? darkTheme : lightTheme;
    this.background = hexOf(theme.background);
    this.foreground = hexOf(theme.cursor);
  }

  /** Answers the last line that has text. */
  paint({ cols, rows, lines, cursor }: ThumbnailMessage): string {
    const before = this.cursor;
    this.cursor = cursor;
    const isNew = cols !== this.cols || rows !== this.rows;
    if (isNew) this.lines = new Map();
    [this.cols, this.rows] = [cols, rows];
    for (const [row, runs] of lines) this.lines.set(row, runs);
    if (isNew) this.repaint();
    else {
      const changed = new Set(lines.map(([row]) => row));
      if (before) changed.add(before[0]);
      if (cursor) changed.add(cursor[0]);
      const context = this.context();
      if (context) for (const row of changed) this.paintLine(context, row);
    }
    return this.lastLine();
  }

  /** After a change of the canvas's size. */
  repaint(): void {
    const ratio = globalThis.devicePixelRatio;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    const context = this.context();
    if (!context) return;
    context.fillStyle = this.background;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    for (let row = 0; row < this.rows; row += 1) this.paintLine(context, row);
  }

  private context(): CanvasRenderingContext2D | null {
    return this.canvas.getContext('2d', { alpha: false });
  }

  private paintLine(context: CanvasRenderingContext2D, row: number): void {
    const { width, height } = this.canvas;
    const cellHeight = Math.min(height / this.rows, width / this.cols / CELL_RATIO);
    const cellWidth = cellHeight * CELL_RATIO;
    const y = row * cellHeight;
    context.fillStyle = this.background;
    context.fillRect(0, y, width, cellHeight + 0.5);
    context.textBaseline = 'middle';
    for (const [col, cols, text, fg, bg, bold] of this.lines.get(row) ?? []) {
      const x = col * cellWidth;
      if (bg >= 0) {
        context.fillStyle = hexOf(bg);
        context.fillRect(x, y, cols * cellWidth, cellHeight + 0.5);
      }
      context.fillStyle = hexOf(fg);
      context.font = `${bold ? 'bold ' : ''}${cellHeight * FONT_RATIO}px 'DejaVu Sans Mono', monospace`;
      context.fillText(text, x, y + cellHeight / 2, cols * cellWidth);
    }
    if (this.cursor?.[0] !== row) return;
    context.fillStyle = this.foreground;
    context.fillRect(this.cursor[1] * cellWidth, y, cellWidth, cellHeight);
  }

  private lastLine(): string {
    for (let row = this.rows - 1; row >= 0; row -= 1) {
      const runs = this.lines.get(row) ?? [];
      const text = runs.map(([, , each]) => each).join('');
      if (text.trim() !== '') return text.trim();
    }
    return '';
  }
}
