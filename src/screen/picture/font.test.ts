import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from '../../../test/support/properties.ts';
import { describe, expect, test } from 'vitest';
import { FIRST_CHARACTER, program, tinyFont } from '../../../test/support/tiny-font.ts';
import type { TinyFont } from '../../../test/support/tiny-font.ts';
import { BrokenFont, Font } from './font.ts';
import { Glyphs } from './glyphs.ts';
import { MachineFonts, scriptsWithoutFont } from './machine-fonts.ts';
import { Outline } from './outline.ts';

const MOVE = { op: 21 };
const H_LINES = { op: 6 };
const CURVE = { op: 8 };
const LOCAL = { op: 10 };
const GLOBAL = { op: 29 };
const RETURN = { op: 11 };
const END = { op: 14 };
/** Enough for the smallest of fonts on the busiest of machines. */
const LIMIT_MS = 1000;
/** Half of the em wide and high, at its lower left. */
const square = program(0, 0, MOVE, 500, 500, -500, H_LINES, END);

function opened(font: TinyFont): Font {
  return new Font(tinyFont(font), LIMIT_MS);
}

/** What the first glyph covers of ten by ten pixels, an em. */
function drawn(font: Font, character = FIRST_CHARACTER): string[] {
  const outline = new Outline(10, 10);
  font.draw(character, outline, { x: 0, y: 10, scale: 0.01, slant: 0 });
  const { alpha } = outline.coverage();
  return Array.from({ length: 10 }, (_, row) =>
    Array.from(alpha.subarray(row * 10, row * 10 + 10), (value) =>
      value > 200 ? '#' : value > 50 ? '+' : '.',
    ).join(''),
  );
}

const quarter = [...Array<string>(5).fill('..........'), ...Array<string>(5).fill('#####.....')];

describe('outlines of a CFF table', () => {
  test('[TM92] lines, and numbers of every size', () => {
    expect(drawn(opened({ glyphs: [square] }))).toEqual(quarter);
    const fixed = Buffer.concat([
      Buffer.from([139, 139, 21, 255, 1, 244, 0, 0, 248, 136]),
      program(-500, H_LINES, END),
    ]);
    expect(drawn(opened({ glyphs: [fixed] }))).toEqual(quarter);
  });

  test('[TM92] every kind of curve closes where it began', () => {
    const around = [
      program(
        500,
        0,
        MOVE,
        276,
        0,
        224,
        224,
        0,
        276,
        CURVE,
        0,
        276,
        -224,
        224,
        -276,
        0,
        CURVE,
        -276,
        0,
        -224,
        -224,
        0,
        -276,
        CURVE,
        0,
        -276,
        224,
        -224,
        276,
        0,
        CURVE,
        END,
      ),
      program(
        500,
        0,
        MOVE,
        276,
        224,
        224,
        276,
        276,
        -224,
        224,
        -276,
        -276,
        -224,
        -224,
        -276,
        -276,
        224,
        -224,
        276,
        { op: 31 },
        END,
      ),
      program(
        0,
        500,
        MOVE,
        -276,
        224,
        -224,
        276,
        276,
        224,
        224,
        276,
        276,
        -224,
        224,
        -276,
        -276,
        -224,
        -224,
        -276,
        { op: 30 },
        END,
      ),
    ];
    const [first, ...others] = around.map((glyph) => drawn(opened({ glyphs: [glyph] })));
    expect(first?.[5]).toBe('##########');
    expect(first?.[0]).toMatch(/^\.[.+]+#{2,6}[.+]+\.$/);
    for (const other of others) expect(other).toEqual(first);
  });

  test('[TM92] hints are passed over, also where their mask follows', () => {
    const hinted = program(
      10,
      20,
      30,
      40,
      { op: 18 },
      5,
      6,
      { op: [19, 0b10100000] },
      0,
      0,
      MOVE,
      500,
      500,
      -500,
      H_LINES,
      END,
    );
    expect(drawn(opened({ glyphs: [hinted] }))).toEqual(quarter);
  });

  test('[TM92] subroutines: those all share, and those of the font the glyph belongs to', () => {
    const lines = program(500, 500, -500, H_LINES, RETURN);
    const small = program(100, 100, -100, H_LINES, RETURN);
    const start = program(0, 0, MOVE, RETURN);
    const calling = program(-107, GLOBAL, -107, LOCAL, END);
    const font = opened({
      glyphs: [calling, calling],
      fontOf: [1, 0],
      local: [[small], [lines]],
      global: [start],
    });
    expect(drawn(font)).toEqual(quarter);
    expect(drawn(font, FIRST_CHARACTER + 1)[9]).toBe('#.........');
    expect(font.has(FIRST_CHARACTER + 2)).toBe(false);
  });

  test('[TM92] a program that is wrong is refused', () => {
    const broken = [
      program(5, { op: 5 }, { op: 21 }, END),
      program({ op: [12, 99] }),
      program(...Array<number>(30_000).fill(1), H_LINES, END),
    ];
    for (const glyph of broken)
      expect(() => drawn(opened({ glyphs: [glyph] }))).toThrow(BrokenFont);
  });

  test('[SC60] work on a hostile font is limited: calls without end, calls beyond number', () => {
    const endless = program(-107, GLOBAL, RETURN);
    // Each calls the next one twice: a thousand million million calls.
    const beyondNumber = Array.from({ length: 50 }, (_, n) =>
      program(n - 106, GLOBAL, n - 106, GLOBAL, RETURN),
    );
    const calling = program(0, 0, MOVE, -107, GLOBAL, END);
    for (const font of [
      { glyphs: [calling, square], global: [endless] },
      { glyphs: [calling, square], global: beyondNumber },
    ])
      expect(() => drawn(new Font(tinyFont(font), 300))).toThrow(BrokenFont);
  });

  test('[SC60] a font that took too long is not asked again, and another one that has the character is', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fonts-'));
    try {
      const beyondNumber = Array.from({ length: 50 }, (_, n) =>
        program(n - 106, GLOBAL, n - 106, GLOBAL, RETURN),
      );
      const hostile = { glyphs: [program(-107, GLOBAL, END), square], global: beyondNumber };
      writeFileSync(join(folder, 'a-hostile.otf'), tinyFont(hostile));
      writeFileSync(join(folder, 'b.otf'), tinyFont({ glyphs: [square, square] }));
      const fonts = new MachineFonts([folder], LIMIT_MS);
      const first = fonts.find(FIRST_CHARACTER, false);
      expect(() => first && drawn(first)).toThrow(BrokenFont);
      const second = fonts.find(FIRST_CHARACTER, false);
      expect(second && drawn(second)).toEqual(quarter);
      expect(() => first?.has(FIRST_CHARACTER + 1)).toThrow(BrokenFont);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('[SC60] a map of characters that is too large or refers to nothing is no reason to fail', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fonts-'));
    try {
      const font = tinyFont({ glyphs: [square] });
      const entry = font.indexOf('cmap');
      const changed = (change: (bytes: Buffer) => void): Buffer => {
        const bytes = Buffer.from(font);
        change(bytes);
        return bytes;
      };
      const broken = [
        changed((bytes) => bytes.writeUInt32BE(0xffff_ffff, entry + 12)),
        changed((bytes) => bytes.writeUInt32BE(0xffff_fff0, entry + 8)),
        changed((bytes) => bytes.writeUInt16BE(0xffff, bytes.readUInt32BE(entry + 8) + 2)),
        changed((bytes) => bytes.writeUInt32BE(0xffff_ffff, bytes.readUInt32BE(entry + 8) + 24)),
        changed((bytes) => bytes.write('none', entry)),
        font.subarray(0, 10),
        Buffer.alloc(0),
      ];
      broken.forEach((bytes, n) => writeFileSync(join(folder, `${n}.otf`), bytes));
      const fonts = new MachineFonts([folder]);
      expect(fonts.find(FIRST_CHARACTER + 1, false)).toBeUndefined();
      writeFileSync(join(folder, 'whole.otf'), font);
      expect(new MachineFonts([folder]).find(FIRST_CHARACTER, false)).toBeInstanceOf(Font);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('[TM92] whatever is changed in a font, it is drawn or refused, never worse', () => {
    const bytes = tinyFont({
      glyphs: [square, program(-107, GLOBAL, -107, LOCAL, END)],
      local: [[program(50, 50, -50, H_LINES, RETURN)], []],
      global: [program(1, 2, MOVE, RETURN)],
    });
    const change = fc.tuple(fc.nat(bytes.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.nat(40), (changes, cut) => {
        const other = Buffer.from(bytes.subarray(0, bytes.length - cut));
        for (const [at, value] of changes) if (at < other.length) other[at] = value;
        for (const character of [FIRST_CHARACTER, FIRST_CHARACTER + 1]) {
          try {
            drawn(new Font(other, LIMIT_MS), character);
          } catch (error) {
            expect(error).toBeInstanceOf(BrokenFont);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('[SC62] scripts that no font of the machine has are named', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fonts-'));
    try {
      const all = ['Chinese', 'Japanese', 'Korean'];
      expect(scriptsWithoutFont(new MachineFonts([folder]))).toEqual(all);
      writeFileSync(join(folder, 'Tiny.otf'), tinyFont({ glyphs: [square] }));
      expect(scriptsWithoutFont(new MachineFonts([folder]))).toEqual(['Japanese', 'Korean']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('[TM92] a character that ours lack is drawn from a font of the machine, bold from a bold one, else as a box', () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fonts-'));
    try {
      const broken = program({ op: [12, 99] });
      const bar = program(0, 0, MOVE, 1000, 200, -1000, H_LINES, END);
      writeFileSync(join(folder, 'a-no-font.otf'), 'this is none');
      writeFileSync(join(folder, 'Tiny-Regular.otf'), tinyFont({ glyphs: [square, broken] }));
      writeFileSync(join(folder, 'Tiny-Bold.otf'), tinyFont({ glyphs: [bar] }));
      const glyphs = new Glyphs(1, new MachineFonts([folder, join(folder, 'missing')]));
      const character = (offset: number): string => String.fromCodePoint(FIRST_CHARACTER + offset);
      const covered = (text: string, bold: boolean): number =>
        glyphs.glyph(text, 2, bold, false).alpha.reduce((total, value) => total + value / 255, 0);
      // Fifteen pixels to the em.
      expect(covered(character(0), false)).toBeCloseTo(7.5 * 7.5, 0);
      expect(covered(character(0), true)).toBeCloseTo(15 * 3, 0);
      const box = covered(character(5), false);
      expect(box).toBeGreaterThan(20);
      expect(covered(character(1), false)).toBe(box);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
