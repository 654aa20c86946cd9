// Animated PNG files: a PNG whose further frames are changed rectangles.

import type { Picture, Rect } from '../picture/canvas.ts';
import { packPixels, pngChunk, pngHead } from '../picture/png.ts';

const KEEP = 0;
const OVERWRITE = 0;

/** Frames are added with their duration. The file is made at the end, because its number of frames comes first. */
export class Apng {
  private readonly width: number;
  private readonly height: number;
  private readonly parts: Buffer[] = [];
  private frames = 0;
  private sequence = 0;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
  }

  add(picture: Picture, rect: Rect, delayMs: number): void {
    const control = Buffer.alloc(26);
    control.writeUInt32BE(this.sequence++, 0);
    control.writeUInt32BE(rect.width, 4);
    control.writeUInt32BE(rect.height, 8);
    control.writeUInt32BE(rect.left, 12);
    control.writeUInt32BE(rect.top, 16);
    control.writeUInt16BE(Math.min(0xffff, Math.max(1, Math.round(delayMs))), 20);
    control.writeUInt16BE(1000, 22);
    control.set([KEEP, OVERWRITE], 24);
    this.parts.push(pngChunk('fcTL', control));
    const data = packPixels(picture, rect);
    if (this.frames === 0) this.parts.push(pngChunk('IDAT', data));
    else {
      const numbered = Buffer.alloc(4 + data.length);
      numbered.writeUInt32BE(this.sequence++, 0);
      numbered.set(data, 4);
      this.parts.push(pngChunk('fdAT', numbered));
    }
    this.frames += 1;
  }

  file(): Buffer {
    const control = Buffer.alloc(8);
    control.writeUInt32BE(this.frames, 0);
    return Buffer.concat([
      pngHead(this.width, this.height),
      pngChunk('acTL', control),
      ...this.parts,
      pngChunk('IEND'),
    ]);
  }
}
