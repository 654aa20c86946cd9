// PNG files, and the parts that an animation (APNG) needs. With at most 256 colours a pixel is one byte, which also
// compresses better.

import { crc32, deflateSync } from 'node:zlib';
import type { Picture, Rect } from './canvas.ts';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const TRUE_COLOUR = 2;
const INDEXED = 3;
const MAX_INDEXED = 256;
/** A higher level makes files hardly smaller and takes twice as long. */
const LEVEL = 3;

/** The index of each colour; undefined if there are too many. */
export type ColourIndexes = ReadonlyMap<number, number>;

export function encodePng(picture: Picture): Buffer {
  const { width, height, pixels } = picture;
  const indexes = indexColours(pixels);
  const whole = { left: 0, top: 0, width, height };
  return Buffer.concat([
    pngHead(width, height, indexes),
    pngChunk('IDAT', packPixels(picture, whole, indexes)),
    pngChunk('IEND'),
  ]);
}

function indexColours(pixels: Uint32Array): ColourIndexes | undefined {
  const indexes = new Map<number, number>();
  let last = -1;
  // By number: there are up to 64 million, and an iterator takes several times as long.
  for (let at = 0; at < pixels.length; at += 1) {
    const pixel = pixels[at]!;
    if (pixel === last) continue;
    last = pixel;
    if (!indexes.has(pixel)) indexes.set(pixel, indexes.size);
    if (indexes.size > MAX_INDEXED) return undefined;
  }
  return indexes;
}

export function pngHead(width: number, height: number, indexes?: ColourIndexes): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, indexes === undefined ? TRUE_COLOUR : INDEXED], 8);
  const parts = [SIGNATURE, pngChunk('IHDR', head)];
  if (indexes !== undefined)
    parts.push(
      pngChunk(
        'PLTE',
        Buffer.from([...indexes.keys()].flatMap((rgb) => [rgb >> 16, rgb >> 8, rgb])),
      ),
    );
  return Buffer.concat(parts);
}

export function pngChunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, 'latin1');
  chunk.set(data, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length);
  return chunk;
}

export function packPixels(
  { width, pixels }: Picture,
  rect: Rect,
  indexes?: ColourIndexes,
): Buffer {
  const stride = rect.width * (indexes === undefined ? 3 : 1) + 1;
  const raw = Buffer.alloc(stride * rect.height);
  let last = -1;
  let index = 0;
  for (let y = 0; y < rect.height; y += 1) {
    const from = (rect.top + y) * width + rect.left;
    // The first byte of a row is its filter; none suits text best.
    let to = y * stride + 1;
    for (let x = 0; x < rect.width; x += 1) {
      const pixel = pixels[from + x] ?? 0;
      if (indexes === undefined) {
        raw[to++] = pixel >> 16;
        raw[to++] = pixel >> 8;
        raw[to++] = pixel;
        continue;
      }
      // Neighbours mostly have one colour.
      if (pixel !== last) [last, index] = [pixel, indexes.get(pixel) ?? 0];
      raw[to++] = index;
    }
  }
  return deflateSync(raw, { level: LEVEL });
}
