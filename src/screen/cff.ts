// The outlines of a font in a CFF table, as OpenType fonts for Chinese, Japanese and Korean have them: where each glyph's
// program is, and which subroutines it may call. In a font by characters (CID-keyed) that depends on the glyph.

import { runCharstring } from './charstring.ts';
import type { Path, Subroutines } from './charstring.ts';

/** Operators of a dictionary; those behind an escape are 1200 and the second byte. */
const CHARSTRINGS = 17;
const PRIVATE = 18;
const SUBROUTINES = 19;
const FONTS = 1236;
const FONT_OF_GLYPH = 1237;
const ESCAPE = 12;

type Dictionary = ReadonlyMap<number, readonly number[]>;

export class CffOutlines {
  private readonly bytes: Buffer;
  private readonly programs: Index;
  private readonly global: Index;
  private readonly dictionaryOf: (font: number) => Dictionary;
  private readonly fontOfGlyph: number | undefined;
  private readonly localOf = new Map<number, Index | undefined>();

  /** A RangeError when it is not as it should be. */
  constructor(table: Buffer) {
    this.bytes = table;
    const names = new Index(table, table.readUInt8(2));
    const tops = new Index(table, names.end);
    const strings = new Index(table, tops.end);
    this.global = new Index(table, strings.end);
    const first = tops.item(0);
    if (first === undefined) throw new RangeError('The font has no dictionary.');
    const top = readDictionary(first);
    this.programs = new Index(table, offsetIn(top, CHARSTRINGS));
    this.fontOfGlyph = top.has(FONTS) ? offsetIn(top, FONT_OF_GLYPH) : undefined;
    const fonts =
      this.fontOfGlyph === undefined ? undefined : new Index(table, offsetIn(top, FONTS));
    this.dictionaryOf = (font) => {
      const found = fonts?.item(font);
      return found === undefined ? top : readDictionary(found);
    };
  }

  /** In the font's own units; none for a glyph that is not there. */
  paths(glyph: number): readonly Path[] {
    const program = this.programs.item(glyph);
    return program === undefined ? [] : runCharstring(program, this.subroutines(glyph));
  }

  private subroutines(glyph: number): Subroutines {
    const font = this.fontOfGlyph === undefined ? 0 : fontOf(this.bytes, this.fontOfGlyph, glyph);
    if (!this.localOf.has(font)) this.localOf.set(font, this.readLocal(font));
    return { local: this.localOf.get(font), global: this.global };
  }

  private readLocal(font: number): Index | undefined {
    const [size = 0, offset = 0] = this.dictionaryOf(font).get(PRIVATE) ?? [];
    const own = readDictionary(within(this.bytes, offset, offset + size));
    const at = own.get(SUBROUTINES)?.[0];
    return at === undefined ? undefined : new Index(this.bytes, offset + at);
  }
}

function offsetIn(dictionary: Dictionary, operator: number): number {
  const [offset] = dictionary.get(operator) ?? [];
  if (offset === undefined) throw new RangeError(`The font's dictionary lacks ${operator}.`);
  return offset;
}

/** Unlike a plain subarray, never shorter than it was asked for. */
function within(bytes: Buffer, start: number, end: number): Buffer {
  if (!(start >= 0 && end >= start && end <= bytes.length))
    throw new RangeError('The font refers to bytes it does not have.');
  return bytes.subarray(start, end);
}

/** A list of pieces of any length. A large font has 65,535 glyphs, of which few are ever asked for. */
class Index {
  readonly count: number;
  /** Behind it. */
  readonly end: number;
  private readonly bytes: Buffer;
  private readonly at: number;
  private readonly size: number;

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes;
    this.at = at;
    this.count = bytes.readUInt16BE(at);
    this.size = this.count === 0 ? 0 : bytes.readUInt8(at + 2);
    if (this.count > 0 && !(this.size >= 1 && this.size <= 4))
      throw new RangeError('A list of the font has offsets of an impossible size.');
    this.end = this.count === 0 ? at + 2 : this.offset(this.count);
  }

  item(index: number): Buffer | undefined {
    if (!(index >= 0 && index < this.count)) return undefined;
    return within(this.bytes, this.offset(index), this.offset(index + 1));
  }

  private offset(index: number): number {
    const data = this.at + 2 + (this.count + 1) * this.size;
    return data + this.bytes.readUIntBE(this.at + 3 + index * this.size, this.size);
  }
}

function readDictionary(bytes: Buffer): Dictionary {
  const entries = new Map<number, readonly number[]>();
  let operands: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const code = bytes.readUInt8(at);
    at += 1;
    if (code === ESCAPE) entries.set(1200 + bytes.readUInt8(at++), operands);
    else if (code < 22) entries.set(code, operands);
    else {
      const { value, size } = operand(bytes, code, at);
      operands.push(value);
      at += size;
      continue;
    }
    operands = [];
  }
  return entries;
}

/** A number, and how many bytes behind its first one it takes. */
function operand(bytes: Buffer, code: number, at: number): { value: number; size: number } {
  if (code === 28) return { value: bytes.readInt16BE(at), size: 2 };
  if (code === 29) return { value: bytes.readInt32BE(at), size: 4 };
  if (code === 30) return { value: 0, size: realSize(bytes, at) };
  if (code < 32 || code === 255)
    throw new RangeError(`A dictionary of the font has the unknown code ${code}.`);
  if (code < 247) return { value: code - 139, size: 0 };
  const low = bytes.readUInt8(at);
  return {
    value: code < 251 ? (code - 247) * 256 + low + 108 : (251 - code) * 256 - low - 108,
    size: 1,
  };
}

/** Real numbers say nothing that is needed here; they end with a half byte of ones. */
function realSize(bytes: Buffer, start: number): number {
  for (let at = start; ; at += 1) {
    const byte = bytes.readUInt8(at);
    if ((byte & 0x0f) === 0x0f || byte >> 4 === 0x0f) return at + 1 - start;
  }
}

function fontOf(bytes: Buffer, at: number, glyph: number): number {
  const format = bytes.readUInt8(at);
  if (format === 0) return bytes.readUInt8(at + 1 + glyph);
  if (format !== 3) throw new RangeError(`The font chooses by the unknown format ${format}.`);
  let low = 0;
  let high = bytes.readUInt16BE(at + 1) - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (bytes.readUInt16BE(at + 3 + middle * 3) <= glyph) low = middle;
    else high = middle - 1;
  }
  return bytes.readUInt8(at + 3 + low * 3 + 2);
}
