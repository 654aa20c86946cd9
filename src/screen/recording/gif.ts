// Animated GIF files: frames of changed rectangles, each with its own palette.

import type { Picture, Rect } from '../picture/canvas.ts';

const MAX_COLOURS = 256;
const MAX_CODES = 4096;

export function gifHead(width: number, height: number): Buffer {
  const head = Buffer.alloc(13);
  head.write('GIF89a', 'latin1');
  head.writeUInt16LE(width, 6);
  head.writeUInt16LE(height, 8);
  // Loop forever, as browsers understand it.
  const loop = Buffer.from('\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00', 'latin1');
  return Buffer.concat([head, loop]);
}

export const GIF_END = Buffer.from([0x3b]);

/** `delayMs` is the duration; the format counts hundredths of a second. */
export function gifFrame(picture: Picture, rect: Rect, delayMs: number): Buffer {
  const { palette, indices } = index(picture, rect);
  const bits = Math.max(2, Math.ceil(Math.log2(Math.max(2, palette.length))));
  const head = Buffer.alloc(18);
  head.set([0x21, 0xf9, 4, 0x04]);
  head.writeUInt16LE(Math.min(0xffff, Math.max(1, Math.round(delayMs / 10))), 4);
  head[8] = 0x2c;
  head.writeUInt16LE(rect.left, 9);
  head.writeUInt16LE(rect.top, 11);
  head.writeUInt16LE(rect.width, 13);
  head.writeUInt16LE(rect.height, 15);
  head[17] = 0x80 | (bits - 1);
  const colours = Buffer.alloc(3 << bits);
  palette.forEach((rgb, at) => colours.set([rgb >> 16, (rgb >> 8) & 0xff, rgb & 0xff], at * 3));
  return Buffer.concat([head, colours, Buffer.from([bits]), blocks(compress(indices, bits))]);
}

function index({ width, pixels }: Picture, rect: Rect): { palette: number[]; indices: Uint8Array } {
  const counts = new Map<number, number>();
  for (let y = rect.top; y < rect.top + rect.height; y += 1) {
    for (let at = y * width + rect.left; at < y * width + rect.left + rect.width; at += 1) {
      const pixel = pixels[at] ?? 0;
      counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    }
  }
  const palette = [...counts]
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, MAX_COLOURS)
    .map(([rgb]) => rgb);
  const numbers = new Map(palette.map((rgb, at) => [rgb, at]));
  const indices = new Uint8Array(rect.width * rect.height);
  let to = 0;
  for (let y = rect.top; y < rect.top + rect.height; y += 1) {
    for (let at = y * width + rect.left; at < y * width + rect.left + rect.width; at += 1) {
      const pixel = pixels[at] ?? 0;
      let number = numbers.get(pixel);
      if (number === undefined) numbers.set(pixel, (number = nearest(palette, pixel)));
      indices[to++] = number;
    }
  }
  return { palette, indices };
}

function nearest(palette: readonly number[], pixel: number): number {
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  palette.forEach((rgb, at) => {
    const [red, green, blue] = [16, 8, 0].map(
      (shift) => ((rgb >> shift) & 0xff) - ((pixel >> shift) & 0xff),
    );
    const distance = 3 * (red ?? 0) ** 2 + 6 * (green ?? 0) ** 2 + (blue ?? 0) ** 2;
    if (distance < least) [least, best] = [distance, at];
  });
  return best;
}

/** LZW with codes that grow from `bits + 1` to 12 bits and are reset when they are used up. */
function compress(indices: Uint8Array, bits: number): Uint8Array {
  const clear = 1 << bits;
  const out = new Uint8Array(indices.length * 2 + 16);
  let length = 0;
  let pending = 0;
  let pendingBits = 0;
  let size = bits + 1;
  const put = (code: number): void => {
    pending |= code << pendingBits;
    pendingBits += size;
    while (pendingBits >= 8) {
      out[length++] = pending & 0xff;
      pending >>>= 8;
      pendingBits -= 8;
    }
  };
  // Maps a prefix and the next index to the code of the longer string.
  const codes = new Uint16Array(MAX_CODES << 8);
  let used: number[] = [];
  let next = clear + 2;
  put(clear);
  let prefix = indices[0] ?? 0;
  for (let at = 1; at < indices.length; at += 1) {
    const key = (prefix << 8) | (indices[at] ?? 0);
    const known = codes[key] ?? 0;
    if (known !== 0) {
      prefix = known;
      continue;
    }
    put(prefix);
    if (next < MAX_CODES) {
      codes[key] = next;
      used.push(key);
      if (next === 1 << size) size += 1;
      next += 1;
    } else {
      put(clear);
      for (const each of used) codes[each] = 0;
      used = [];
      size = bits + 1;
      next = clear + 2;
    }
    prefix = indices[at] ?? 0;
  }
  put(prefix);
  put(clear + 1);
  if (pendingBits > 0) out[length++] = pending & 0xff;
  return out.subarray(0, length);
}

function blocks(data: Uint8Array): Buffer {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += 255) {
    const block = data.subarray(at, at + 255);
    parts.push(Uint8Array.of(block.length), block);
  }
  return Buffer.concat([...parts, Uint8Array.of(0)]);
}
