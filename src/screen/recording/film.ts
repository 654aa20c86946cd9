// A recording as a moving picture: a frame when the screen changed, up to a frame rate, with its duration. Each frame
// stores only the changed rectangle.

import { Apng } from './apng.ts';
import type { Picture, Rect } from '../picture/canvas.ts';
import { gifFrame, gifHead, GIF_END } from './gif.ts';
import type { Painter } from '../picture/painter.ts';
import type { Shown } from '../picture/painter.ts';

export type FilmFormat = 'gif' | 'apng';

export interface FilmOptions {
  readonly format: FilmFormat;
  /** The size of all frames. */
  readonly cols: number;
  readonly rows: number;
  readonly fps: number;
}

/** The last frame stays this long, so that it can be read before the loop restarts. */
const HOLD_MS = 1000;
/** The longest duration that both formats can express. */
const MAX_FRAME_MS = 60_000;

export class Film {
  private readonly painter: Painter;
  private readonly cols: number;
  private readonly rows: number;
  private readonly format: FilmFormat;
  private readonly leastMs: number;
  private readonly gif: Buffer[] = [];
  private apng: Apng | undefined;
  private shown: Picture | undefined;
  private waiting:
    | { readonly rect: Rect; readonly picture: Picture; readonly atMs: number }
    | undefined;
  private changedAtMs: number | undefined;
  private lastAtMs = Number.NEGATIVE_INFINITY;
  private count = 0;

  constructor(painter: Painter, { format, cols, rows, fps }: FilmOptions) {
    this.painter = painter;
    this.format = format;
    this.cols = cols;
    this.rows = rows;
    this.leastMs = 1000 / fps;
  }

  get frames(): number {
    return this.count;
  }

  get size(): { readonly width: number; readonly height: number } {
    return { width: this.shown?.width ?? 0, height: this.shown?.height ?? 0 };
  }

  /** The screen changes at this time. `look` still shows it as it was before. */
  before(atMs: number, look: () => Shown): void {
    if (this.changedAtMs === undefined) return;
    const due = Math.max(this.lastAtMs + this.leastMs, this.changedAtMs);
    if (atMs > due) this.frame(due, look());
  }

  changed(atMs: number): void {
    this.changedAtMs ??= atMs;
  }

  end(atMs: number, look: () => Shown): Buffer {
    if (this.changedAtMs !== undefined || this.shown === undefined)
      this.frame(Math.max(this.lastAtMs + this.leastMs, this.changedAtMs ?? 0), look());
    this.flush(Math.max(atMs, this.lastAtMs) + HOLD_MS);
    if (this.format === 'gif') return Buffer.concat([...this.gif, GIF_END]);
    return this.apng?.file() ?? Buffer.alloc(0);
  }

  private frame(atMs: number, shown: Shown): void {
    this.changedAtMs = undefined;
    const picture = this.painter.paint(shown, this.cols, this.rows);
    const rect = this.shown === undefined ? whole(picture) : difference(this.shown, picture);
    if (rect === undefined) return;
    this.flush(atMs);
    this.shown = picture;
    this.lastAtMs = atMs;
    this.waiting = { rect, picture, atMs };
  }

  /** Writes the last frame, whose duration is known only now. */
  private flush(untilMs: number): void {
    if (this.waiting === undefined) return;
    const { rect, picture, atMs } = this.waiting;
    this.waiting = undefined;
    for (let left = untilMs - atMs; left > 0; left -= MAX_FRAME_MS) {
      const delayMs = Math.min(left, MAX_FRAME_MS);
      // A frame that lasts longer than the maximum is repeated as one pixel.
      const part = left === untilMs - atMs ? rect : { left: 0, top: 0, width: 1, height: 1 };
      this.write(picture, part, delayMs);
    }
  }

  private write(picture: Picture, rect: Rect, delayMs: number): void {
    this.count += 1;
    if (this.format === 'apng') {
      this.apng ??= new Apng(picture.width, picture.height);
      return this.apng.add(picture, rect, delayMs);
    }
    if (this.gif.length === 0) this.gif.push(gifHead(picture.width, picture.height));
    this.gif.push(gifFrame(picture, rect, delayMs));
  }
}

function whole({ width, height }: Picture): Rect {
  return { left: 0, top: 0, width, height };
}

/** The smallest rectangle that contains all differences; undefined if there are none. */
export function difference(before: Picture, after: Picture): Rect | undefined {
  const { width, height, pixels } = after;
  const differs = (x: number, y: number): boolean =>
    before.pixels[y * width + x] !== pixels[y * width + x];
  const rowDiffers = (y: number): boolean => {
    for (let x = 0; x < width; x += 1) if (differs(x, y)) return true;
    return false;
  };
  let top = 0;
  while (top < height && !rowDiffers(top)) top += 1;
  if (top === height) return undefined;
  let bottom = height - 1;
  while (!rowDiffers(bottom)) bottom -= 1;
  let left = width;
  let right = 0;
  for (let y = top; y <= bottom; y += 1) {
    for (let x = 0; x < left; x += 1) if (differs(x, y)) left = x;
    for (let x = width - 1; x > right; x -= 1) if (differs(x, y)) right = x;
  }
  right = Math.max(right, left);
  return { left, top, width: right - left + 1, height: bottom - top + 1 };
}
