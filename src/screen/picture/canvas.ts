// Pixels, and two operations on them: fill a rectangle, draw a glyph.

import type { Coverage } from './outline.ts';
import type { Rgb } from '../../base/bytes/terminal-colours.ts';

/** 0xrrggbb each, row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array;
}

export interface Rect {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export class Canvas implements Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array;

  constructor(width: number, height: number, background: Rgb) {
    this.width = width;
    this.height = height;
    this.pixels = new Uint32Array(width * height).fill(background);
  }

  fillRect({ left, top, width, height }: Rect, colour: Rgb): void {
    const right = Math.min(left + width, this.width);
    const bottom = Math.min(top + height, this.height);
    for (let y = Math.max(0, top); y < bottom; y += 1)
      this.pixels.fill(colour, y * this.width + left, y * this.width + right);
  }

  /** Each pixel gets the colour of the ramp, from background to foreground, for its coverage. */
  drawGlyph(left: number, top: number, coverage: Coverage, ramp: readonly Rgb[]): void {
    const { width, height, alpha } = coverage;
    const shades = ramp.length - 1;
    const right = Math.min(width, this.width - left);
    for (let y = 0; y < height; y += 1) {
      const to = (top + y) * this.width + left;
      for (let x = 0; x < right; x += 1) {
        const covered = alpha[y * width + x] ?? 0;
        if (covered > 0) this.pixels[to + x] = ramp[Math.round((covered * shades) / 255)] ?? 0;
      }
    }
  }
}
