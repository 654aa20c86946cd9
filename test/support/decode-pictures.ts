// Reading back what the painters wrote, with decoders that are not ours: pngjs and omggif. pngjs knows no animation, so an
// APNG is cut into a PNG file per frame.

import { GifReader } from 'omggif';
import { PNG } from 'pngjs';
import { crc32 } from 'node:zlib';

export interface Decoded {
  readonly width: number;
  readonly height: number;
  /** 0xrrggbb after each frame, with how long it is shown. */
  readonly frames: readonly { readonly pixels: Uint32Array; readonly delayMs: number }[];
}

const SIGNATURE_BYTES = 8;

export function decodePng(file: Buffer): Decoded {
  const { width, height } = PNG.sync.read(file);
  const pixels = new Uint32Array(width * height);
  const frames: { pixels: Uint32Array; delayMs: number }[] = [];
  let header: Buffer = Buffer.alloc(0);
  let palette: Buffer = header;
  let place = { left: 0, top: 0, delayMs: 0 };
  for (const { type, data } of chunksOf(file)) {
    if (type === 'IHDR') header = Buffer.from(data);
    if (type === 'PLTE') palette = chunk(type, data);
    if (type === 'fcTL') {
      data.copy(header, 0, 4, 12);
      const delayMs = (data.readUInt16BE(20) * 1000) / data.readUInt16BE(22);
      place = { left: data.readUInt32BE(12), top: data.readUInt32BE(16), delayMs };
    }
    if (type !== 'IDAT' && type !== 'fdAT') continue;
    const image = type === 'IDAT' ? data : data.subarray(4);
    const parts = [chunk('IHDR', header), palette, chunk('IDAT', image), chunk('IEND')];
    const frame = PNG.sync.read(Buffer.concat([file.subarray(0, SIGNATURE_BYTES), ...parts]));
    coloursOf(frame.data).forEach((colour, n) => {
      const row = place.top + Math.floor(n / frame.width);
      pixels[row * width + place.left + (n % frame.width)] = colour;
    });
    frames.push({ pixels: Uint32Array.from(pixels), delayMs: place.delayMs });
  }
  return { width, height, frames };
}

export function decodeGif(file: Buffer): Decoded {
  const reader = new GifReader(file);
  const rgba = Buffer.alloc(reader.width * reader.height * 4);
  const frames = Array.from({ length: reader.numFrames() }, (_, n) => {
    reader.decodeAndBlitFrameRGBA(n, rgba);
    return { pixels: coloursOf(rgba), delayMs: reader.frameInfo(n).delay * 10 };
  });
  return { width: reader.width, height: reader.height, frames };
}

function coloursOf(rgba: Buffer): Uint32Array {
  return Uint32Array.from({ length: rgba.length / 4 }, (_, n) => rgba.readUIntBE(n * 4, 3));
}

function* chunksOf(file: Buffer): Generator<{ type: string; data: Buffer }> {
  for (let at = SIGNATURE_BYTES; at < file.length;) {
    const bytes = file.readUInt32BE(at);
    const type = file.toString('latin1', at + 4, at + 8);
    const end = at + 8 + bytes;
    if (file.readUInt32BE(end) !== crc32(file.subarray(at + 4, end)))
      throw new Error(`The sum of ${type} is wrong.`);
    yield { type, data: file.subarray(at + 8, end) };
    at = end + 4;
  }
}

function chunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
