// A font file, as far as drawing single characters needs it: which glyph a character has, its outline, the advance.
// Collections are opened at their first font. Outlines are TrueType's, read here, or those of a CFF table.

import { CffOutlines } from './cff.ts';
import { readCharacterMap } from './character-map.ts';
import type { CharacterMap } from './character-map.ts';
import type { Path } from './charstring.ts';
import { inMemory, readTables } from './font-tables.ts';
import type { FontTable } from './font-tables.ts';
import type { Outline, Point } from './outline.ts';

const MAX_DEPTH = 6;

interface Contour {
  readonly points: readonly (Point & { readonly onCurve: boolean })[];
}

/** From a glyph's own units to pixels: x' = xx·x + yx·y + dx, y' = xy·x + yy·y + dy. */
interface Transform {
  readonly xx: number;
  readonly xy: number;
  readonly yx: number;
  readonly yy: number;
  readonly dx: number;
  readonly dy: number;
}

export interface Placing {
  /** Of the glyph's origin, which lies on the base line. */
  readonly x: number;
  readonly y: number;
  /** Pixels per unit. */
  readonly scale: number;
  /** How far it leans to the right, per unit of height. */
  readonly slant: number;
}

export class TrueTypeFont {
  readonly unitsPerEm: number;
  readonly ascent: number;
  readonly descent: number;
  private readonly bytes: Buffer;
  private readonly tables: ReadonlyMap<string, FontTable>;
  private readonly longOffsets: boolean;
  private readonly advances: number;
  private readonly cff: CffOutlines | undefined;
  private readonly lookUp: CharacterMap;

  /** Undefined when the file is no font of this kind. */
  static open(bytes: Buffer): TrueTypeFont | undefined {
    try {
      const font = new TrueTypeFont(bytes);
      const hasOutlines = font.tables.has('glyf') || font.cff !== undefined;
      return hasOutlines && font.tables.has('cmap') ? font : undefined;
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }

  private constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.tables = readTables(inMemory(bytes));
    const head = this.table('head');
    this.unitsPerEm = bytes.readUInt16BE(head + 18);
    this.longOffsets = bytes.readInt16BE(head + 50) !== 0;
    const hhea = this.table('hhea');
    this.ascent = bytes.readInt16BE(hhea + 4);
    this.descent = -bytes.readInt16BE(hhea + 6);
    this.advances = bytes.readUInt16BE(hhea + 34);
    this.lookUp = readCharacterMap(bytes, this.table('cmap'));
    if (this.tables.has('CFF ')) this.cff = new CffOutlines(bytes.subarray(this.table('CFF ')));
  }

  /** 0 when the font does not have the character. */
  glyph(codePoint: number): number {
    return this.lookUp(codePoint);
  }

  advance(glyph: number): number {
    return this.bytes.readUInt16BE(this.table('hmtx') + Math.min(glyph, this.advances - 1) * 4);
  }

  draw(glyph: number, outline: Outline, { x, y, scale, slant }: Placing): void {
    const transform = { xx: scale, xy: 0, yx: slant * scale, yy: -scale, dx: x, dy: y };
    if (this.cff === undefined) this.drawGlyph(glyph, outline, transform, 0);
    else for (const path of this.cff.paths(glyph)) drawPath(path, outline, transform);
  }

  private drawGlyph(glyph: number, outline: Outline, transform: Transform, depth: number): void {
    const at = this.glyphAt(glyph);
    if (at === undefined || depth > MAX_DEPTH) return;
    const contours = this.bytes.readInt16BE(at);
    if (contours < 0) this.drawComposite(at + 10, outline, transform, depth);
    else
      for (const contour of this.readContours(at, contours))
        drawContour(contour, outline, transform);
  }

  private glyphAt(glyph: number): number | undefined {
    const loca = this.table('loca');
    const offset = (index: number): number =>
      this.longOffsets
        ? this.bytes.readUInt32BE(loca + index * 4)
        : this.bytes.readUInt16BE(loca + index * 2) * 2;
    const [start, end] = [offset(glyph), offset(glyph + 1)];
    return end > start ? this.table('glyf') + start : undefined;
  }

  private drawComposite(start: number, outline: Outline, outer: Transform, depth: number): void {
    const { bytes } = this;
    for (let at = start, more = true; more;) {
      const flags = bytes.readUInt16BE(at);
      const glyph = bytes.readUInt16BE(at + 2);
      at += 4;
      const words = (flags & 1) !== 0;
      const [dx, dy] = words
        ? [bytes.readInt16BE(at), bytes.readInt16BE(at + 2)]
        : [bytes.readInt8(at), bytes.readInt8(at + 1)];
      at += words ? 4 : 2;
      const f2dot14 = (): number => {
        at += 2;
        return bytes.readInt16BE(at - 2) / 16384;
      };
      let [xx, xy, yx, yy] = [1, 0, 0, 1];
      if ((flags & 0x08) !== 0) xx = yy = f2dot14();
      else if ((flags & 0x40) !== 0) [xx, yy] = [f2dot14(), f2dot14()];
      else if ((flags & 0x80) !== 0)
        [xx, xy, yx, yy] = [f2dot14(), f2dot14(), f2dot14(), f2dot14()];
      // Offsets by matching points (flag 2 not set) are not used by any font that was met.
      this.drawGlyph(glyph, outline, nested(outer, { xx, xy, yx, yy, dx, dy }), depth + 1);
      more = (flags & 0x20) !== 0;
    }
  }

  private readContours(start: number, count: number): Contour[] {
    const { bytes } = this;
    const ends = Array.from({ length: count }, (_, n) => bytes.readUInt16BE(start + 10 + n * 2));
    const points = (ends.at(-1) ?? -1) + 1;
    let at = start + 10 + count * 2;
    at += 2 + bytes.readUInt16BE(at);
    const flags: number[] = [];
    while (flags.length < points) {
      const flag = bytes.readUInt8(at++);
      const times = (flag & 8) === 0 ? 1 : bytes.readUInt8(at++) + 1;
      for (let n = 0; n < times; n += 1) flags.push(flag);
    }
    const coordinates = (short: number, same: number): number[] => {
      let value = 0;
      return flags.slice(0, points).map((flag) => {
        if ((flag & short) !== 0)
          value += (flag & same) === 0 ? -bytes.readUInt8(at++) : bytes.readUInt8(at++);
        else if ((flag & same) === 0) {
          value += bytes.readInt16BE(at);
          at += 2;
        }
        return value;
      });
    };
    const xs = coordinates(2, 16);
    const ys = coordinates(4, 32);
    let from = 0;
    return ends.map((end) => {
      const contour = {
        points: xs.slice(from, end + 1).map((x, n) => point(x, ys[from + n], flags[from + n])),
      };
      from = end + 1;
      return contour;
    });
  }

  private table(tag: string): number {
    const table = this.tables.get(tag);
    if (table === undefined) throw new RangeError(`The font has no table "${tag}".`);
    return table.at;
  }
}

function point(x: number, y = 0, flag = 0): Point & { onCurve: boolean } {
  return { x, y, onCurve: (flag & 1) !== 0 };
}

function nested(outer: Transform, inner: Transform): Transform {
  return {
    xx: outer.xx * inner.xx + outer.yx * inner.xy,
    xy: outer.xy * inner.xx + outer.yy * inner.xy,
    yx: outer.xx * inner.yx + outer.yx * inner.yy,
    yy: outer.xy * inner.yx + outer.yy * inner.yy,
    dx: outer.xx * inner.dx + outer.yx * inner.dy + outer.dx,
    dy: outer.xy * inner.dx + outer.yy * inner.dy + outer.dy,
  };
}

function drawPath({ start, segments }: Path, outline: Outline, t: Transform): void {
  const begin = placed(start, t);
  let at = begin;
  for (const segment of segments) {
    if (segment.length === 1) {
      const to = placed(segment[0], t);
      outline.line(at, to);
      at = to;
    } else {
      const [first, second, to] = [
        placed(segment[0], t),
        placed(segment[1], t),
        placed(segment[2], t),
      ];
      outline.cubic(at, [first, second, to]);
      at = to;
    }
  }
  outline.line(at, begin);
}

function placed({ x, y }: Point, t: Transform): Point {
  return { x: t.xx * x + t.yx * y + t.dx, y: t.xy * x + t.yy * y + t.dy };
}

/** Points off the curve bend it; between two of them the one in the middle is on it. */
function drawContour({ points }: Contour, outline: Outline, t: Transform): void {
  const all = points.map((each) => ({ ...placed(each, t), onCurve: each.onCurve }));
  const first = all[0];
  const last = all.at(-1);
  if (first === undefined || last === undefined) return;
  const start = first.onCurve ? first : last.onCurve ? last : middle(first, last);
  let at: Point = start;
  let control: Point | undefined;
  for (const next of [...all, { ...start, onCurve: true }]) {
    if (next.onCurve) {
      if (control === undefined) outline.line(at, next);
      else outline.curve(at, control, next);
      at = next;
      control = undefined;
    } else {
      if (control !== undefined) {
        const between = middle(control, next);
        outline.curve(at, control, between);
        at = between;
      }
      control = next;
    }
  }
}

function middle(a: Point, b: Point): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}
