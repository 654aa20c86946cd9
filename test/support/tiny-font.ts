// A tiny OpenType font with CFF outlines, keyed by characters as the large fonts for Chinese, Japanese and Korean are: two
// fonts in one, each with subroutines of its own, and one they share.

export interface TinyFont {
  /** Programs of the glyphs from number 1 on; they are the characters from U+6F22 on. */
  readonly glyphs: readonly Buffer[];
  /** Which of the two fonts each glyph belongs to. */
  readonly fontOf?: readonly number[];
  readonly local?: readonly [readonly Buffer[], readonly Buffer[]];
  readonly global?: readonly Buffer[];
}

export const FIRST_CHARACTER = 0x6f22;
const UNITS_PER_EM = 1000;

/** A charstring or dictionary of numbers and operators, which are given as {op}. */
export function program(
  ...parts: (number | { readonly op: number | readonly number[] })[]
): Buffer {
  return Buffer.concat(
    parts.map((part) =>
      typeof part === 'number'
        ? Buffer.from([28, (part >> 8) & 255, part & 255])
        : Buffer.from(typeof part.op === 'number' ? [part.op] : part.op),
    ),
  );
}

export function tinyFont(font: TinyFont): Buffer {
  const tables: Readonly<Record<string, Buffer>> = {
    'CFF ': cff(font),
    cmap: characterMap(font.glyphs.length),
    head: words(54, { 18: UNITS_PER_EM }),
    hhea: words(36, { 4: 800, 6: 0x10000 - 200, 34: 1 }),
    hmtx: words(4, { 0: UNITS_PER_EM }),
    maxp: words(32, { 0: 1, 4: font.glyphs.length + 1 }),
    'OS/2': words(78, {}),
  };
  const names = Object.keys(tables);
  let at = 12 + names.length * 16;
  const entries = names.map((name) => {
    const bytes = tables[name]?.length ?? 0;
    const entry = Buffer.alloc(16);
    entry.write(name, 'latin1');
    entry.writeUInt32BE(at, 8);
    entry.writeUInt32BE(bytes, 12);
    at += bytes;
    return entry;
  });
  const header = Buffer.alloc(12);
  header.write('OTTO', 'latin1');
  header.writeUInt16BE(names.length, 4);
  return Buffer.concat([header, ...entries, ...Object.values(tables)]);
}

function cff({ glyphs, fontOf = [], local = [[], []], global = [] }: TinyFont): Buffer {
  const header = Buffer.from([1, 0, 4, 4]);
  const names = index([Buffer.from('Tiny')]);
  const strings = index([]);
  const shared = index(global);
  const charstrings = index([program({ op: 14 }), ...glyphs]);
  const fonts = [0, ...glyphs.map((_, n) => fontOf[n] ?? 0)];
  const ranges = fonts.map((font, glyph) => Buffer.from([glyph >> 8, glyph & 255, font]));
  const select = Buffer.concat([
    Buffer.from([3, 0, fonts.length]),
    ...ranges,
    Buffer.from([fonts.length >> 8, fonts.length & 255]),
  ]);
  // Private dictionaries say how far behind them their subroutines are; large numbers have the same size everywhere.
  const privates = local.map((subroutines) =>
    Buffer.concat([dictionary([[6], [19]]), index(subroutines)]),
  );
  const privateBytes = dictionary([[6], [19]]).length;
  const top = (offsets: readonly number[]): Buffer =>
    index([
      dictionary([
        [0, 0, 0, [12, 30]],
        [offsets[0] ?? 0, 17],
        [offsets[1] ?? 0, [12, 36]],
        [offsets[2] ?? 0, [12, 37]],
      ]),
    ]);
  const fontList = (first: number): Buffer =>
    index([
      dictionary([[privateBytes, first, 18]]),
      dictionary([[privateBytes, first + (privates[0]?.length ?? 0), 18]]),
    ]);
  const start = [header, names, top([]), strings, shared].reduce(
    (sum, { length }) => sum + length,
    0,
  );
  const privateAt = start + charstrings.length + fontList(0).length + select.length;
  const offsets = [
    start,
    start + charstrings.length,
    start + charstrings.length + fontList(0).length,
  ];
  const body = [charstrings, fontList(privateAt), select, ...privates];
  return Buffer.concat([header, names, top(offsets), strings, shared, ...body]);

  function dictionary(rows: readonly (readonly (number | readonly number[])[])[]): Buffer {
    return Buffer.concat(
      rows.map((row) => {
        const operator = row.at(-1) ?? 0;
        // [19] alone: how far behind its dictionary the subroutines are, which is its own size.
        const operands = row.length === 1 ? (operator === 19 ? [12] : [0]) : row.slice(0, -1);
        const numbers = operands.map((value) => {
          const bytes = Buffer.alloc(5, 29);
          bytes.writeInt32BE(Number(value), 1);
          return bytes;
        });
        return Buffer.concat([
          ...numbers,
          Buffer.from(typeof operator === 'number' ? [operator] : operator),
        ]);
      }),
    );
  }
}

function index(items: readonly Buffer[]): Buffer {
  if (items.length === 0) return Buffer.alloc(2);
  const head = Buffer.alloc(3 + (items.length + 1) * 4);
  head.writeUInt16BE(items.length);
  head[2] = 4;
  let at = 1;
  head.writeUInt32BE(at, 3);
  items.forEach((item, n) => {
    at += item.length;
    head.writeUInt32BE(at, 7 + n * 4);
  });
  return Buffer.concat([head, ...items]);
}

function characterMap(count: number): Buffer {
  const table = Buffer.alloc(12 + 16 + 12);
  table.writeUInt16BE(1, 2);
  table.writeUInt16BE(3, 4);
  table.writeUInt16BE(10, 6);
  table.writeUInt32BE(12, 8);
  table.writeUInt16BE(12, 12);
  table.writeUInt32BE(28, 16);
  table.writeUInt32BE(1, 24);
  table.writeUInt32BE(FIRST_CHARACTER, 28);
  table.writeUInt32BE(FIRST_CHARACTER + count - 1, 32);
  table.writeUInt32BE(1, 36);
  return table;
}

function words(bytes: number, values: Readonly<Record<number, number>>): Buffer {
  const table = Buffer.alloc(bytes);
  for (const [at, value] of Object.entries(values)) table.writeUInt16BE(value, Number(at));
  return table;
}
