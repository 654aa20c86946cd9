// Reading back what the painters wrote: PNG, APNG and GIF files as pixels, just as far as our own files go.

import { crc32, inflateSync } from 'node:zlib';

export interface Decoded {
  readonly width: number;
  readonly height: number;
  /** 0xrrggbb after each frame, with how long it is shown. */
  readonly frames: readonly { readonly pixels: Uint32Array; readonly delayMs: number }[];
}

export function decodePng(file: Buffer): Decoded {
  let [width, height] = [0, 0];
  let palette: number[] | undefined;
  let rect = { left: 0, top: 0, width: 0, height: 0, delayMs: 0 };
  let pixels = new Uint32Array();
  const frames: { pixels: Uint32Array; delayMs: number }[] = [];
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at);
    const type = file.toString('latin1', at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + length);
    if (file.readUInt32BE(at + 8 + length) !== crc32(file.subarray(at + 4, at + 8 + length)))
      throw new Error(`The sum of ${type} is wrong.`);
    if (type === 'IHDR') {
      [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
      pixels = new Uint32Array(width * height);
      rect = { left: 0, top: 0, width, height, delayMs: 0 };
    }
    if (type === 'PLTE')
      palette = Array.from({ length: length / 3 }, (_, n) => data.readUIntBE(n * 3, 3));
    if (type === 'fcTL')
      rect = {
        width: data.readUInt32BE(4),
        height: data.readUInt32BE(8),
        left: data.readUInt32BE(12),
        top: data.readUInt32BE(16),
        delayMs: (data.readUInt16BE(20) * 1000) / data.readUInt16BE(22),
      };
    if (type === 'IDAT' || type === 'fdAT') {
      const raw = inflateSync(type === 'IDAT' ? data : data.subarray(4));
      const size = palette === undefined ? 3 : 1;
      for (let y = 0; y < rect.height; y += 1)
        for (let x = 0; x < rect.width; x += 1) {
          const value = raw.readUIntBE(y * (rect.width * size + 1) + 1 + x * size, size);
          pixels[(rect.top + y) * width + rect.left + x] =
            palette === undefined ? value : (palette[value] ?? 0);
        }
      frames.push({ pixels: Uint32Array.from(pixels), delayMs: rect.delayMs });
    }
    at += 12 + length;
  }
  return { width, height, frames };
}

export function decodeGif(file: Buffer): Decoded {
  const [width, height] = [file.readUInt16LE(6), file.readUInt16LE(8)];
  const pixels = new Uint32Array(width * height);
  const frames: { pixels: Uint32Array; delayMs: number }[] = [];
  let delayMs = 0;
  let at = 13;
  const blocks = (): Buffer => {
    const parts: Buffer[] = [];
    for (let length = file[at++] ?? 0; length > 0; length = file[at++] ?? 0) {
      parts.push(file.subarray(at, at + length));
      at += length;
    }
    return Buffer.concat(parts);
  };
  while (file[at] !== 0x3b) {
    if (file[at] === 0x21) {
      const label = file[at + 1];
      at += 2;
      const data = blocks();
      if (label === 0xf9) delayMs = data.readUInt16LE(1) * 10;
      continue;
    }
    const [left, top, w, h] = [1, 3, 5, 7].map((n) => file.readUInt16LE(at + n)) as [
      number,
      number,
      number,
      number,
    ];
    const colours = 2 << ((file[at + 9] ?? 0) & 7);
    const table = at + 10;
    at = table + colours * 3;
    const bits = file[at++] ?? 0;
    const indices = unpack(blocks(), bits, w * h);
    indices.forEach((index, n) => {
      pixels[(top + Math.floor(n / w)) * width + left + (n % w)] = file.readUIntBE(
        table + index * 3,
        3,
      );
    });
    frames.push({ pixels: Uint32Array.from(pixels), delayMs });
  }
  return { width, height, frames };
}

function unpack(data: Buffer, bits: number, length: number): number[] {
  const clear = 1 << bits;
  let strings: number[][] = [];
  let size = bits + 1;
  let at = 0;
  let last: number[] | undefined;
  const out: number[] = [];
  const next = (): number => {
    let code = 0;
    for (let n = 0; n < size; n += 1, at += 1)
      code |= (((data[at >> 3] ?? 0) >> (at & 7)) & 1) << n;
    return code;
  };
  for (let code = next(); code !== clear + 1; code = next()) {
    if (code === clear) {
      strings = Array.from({ length: clear + 2 }, (_, n) => [n]);
      size = bits + 1;
      last = undefined;
      continue;
    }
    const string: number[] = strings[code] ?? [...(last ?? []), last?.[0] ?? 0];
    if (last !== undefined && strings.length < 4096) strings.push([...last, string[0] ?? 0]);
    if (strings.length === 1 << size && size < 12) size += 1;
    out.push(...string);
    last = string;
  }
  if (out.length !== length) throw new Error(`${out.length} pixels instead of ${length}.`);
  return out;
}
