// A font file, as far as drawing single characters needs it: which characters it has, their outlines and advances. Its
// library trusts what it reads; a file that is broken or hostile gets no further than this module and is a `BrokenFont`.

import { createRequire } from 'node:module';
import type { Font as FontFile, PathCommand } from 'fontkitten';
import { RanTooLong, runLimited } from '../../base/limited-run.ts';
import type { Outline, Point } from './outline.ts';

export class BrokenFont extends Error {}

export interface Placing {
  /** Of the character's origin, which lies on the base line. */
  readonly x: number;
  readonly y: number;
  /** Pixels per unit. */
  readonly scale: number;
  /** How far it leans to the right, per unit of height. */
  readonly slant: number;
}

/** The library keeps the outline of every glyph it has drawn, so after this many the file is opened anew. */
const MAX_GLYPHS_KEPT = 2000;
/** The most complicated glyph that was met has under two thousand. */
const MAX_COMMANDS = 20_000;
export class Font {
  readonly unitsPerEm: number;
  private readonly bytes: Buffer;
  private readonly limitMs: number | undefined;
  private file: FontFile;
  private glyphsKept = 0;
  private isGivenUp = false;

  /** The work on a glyph may take `limitMs`; without, the file is trusted. A `BrokenFont` when it is no font. */
  constructor(bytes: Buffer, limitMs?: number) {
    this.bytes = bytes;
    this.limitMs = limitMs;
    this.file = this.attempt(() => openFile(bytes));
    this.unitsPerEm = this.attempt(() => {
      // The map of characters is read here; to look into it later takes no time.
      this.file.hasGlyphForCodePoint(0);
      return this.file.unitsPerEm;
    });
    if (!(this.unitsPerEm >= 16 && this.unitsPerEm <= 16_384))
      throw new BrokenFont(`The font has ${this.unitsPerEm} units per em.`);
  }

  get ascent(): number {
    return this.attempt(() => this.file.ascent);
  }

  /** Below the base line; positive. */
  get descent(): number {
    return this.attempt(() => -this.file.descent);
  }

  has(codePoint: number): boolean {
    return this.attempt(() => this.file.hasGlyphForCodePoint(codePoint), 'quick');
  }

  advance(codePoint: number): number {
    return this.attempt(() => this.file.glyphForCodePoint(codePoint).advanceWidth);
  }

  draw(codePoint: number, outline: Outline, placing: Placing): void {
    this.glyphsKept += 1;
    if (this.glyphsKept > MAX_GLYPHS_KEPT) {
      this.file = this.attempt(() => openFile(this.bytes));
      this.glyphsKept = 1;
    }
    const { commands } = this.attempt(() => this.file.glyphForCodePoint(codePoint).path);
    if (commands.length > MAX_COMMANDS)
      throw new BrokenFont(`A glyph of the font has ${commands.length} parts.`);
    if (commands.some(({ args }) => !args.every(Number.isFinite)))
      throw new BrokenFont('A glyph of the font has coordinates that are no numbers.');
    drawPath(commands, outline, placing);
  }

  private attempt<T>(act: () => T, work?: 'quick'): T {
    const limitMs = work === 'quick' ? undefined : this.limitMs;
    if (this.isGivenUp) throw new BrokenFont('The font took too long before.');
    return orBroken(() => {
      try {
        return limitMs === undefined ? act() : runLimited(act, limitMs);
      } catch (error) {
        this.isGivenUp = error instanceof RanTooLong;
        throw error;
      }
    });
  }
}

/** Whether a font has a character, by the table `cmap` alone. A `BrokenFont` when it cannot be read. */
export function characterTest(cmap: Buffer, limitMs: number): (codePoint: number) => boolean {
  const header = Buffer.alloc(28);
  header.write('true\0\x01', 'latin1');
  header.write('cmap', 12, 'latin1');
  header.writeUInt32BE(header.length, 20);
  header.writeUInt32BE(cmap.length, 24);
  const bytes = Buffer.concat([header, cmap]);
  const file = orBroken(() =>
    runLimited(() => {
      const opened = openFile(bytes);
      opened.hasGlyphForCodePoint(0);
      return opened;
    }, limitMs),
  );
  return (codePoint) => orBroken(() => file.hasGlyphForCodePoint(codePoint));
}

function orBroken<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new BrokenFont('The font cannot be read.', { cause: error });
  }
}

/** Of a collection the first font. */
function openFile(bytes: Buffer): FontFile {
  // Loaded here, so that only a thread that draws ever pays for it.
  const { create } = createRequire(import.meta.url)('fontkitten') as typeof import('fontkitten');
  const opened = create(bytes);
  const [first] = opened.isCollection ? opened.fonts : [opened];
  if (first === undefined) throw new Error('The collection is empty.');
  return first;
}

function drawPath(commands: readonly PathCommand[], outline: Outline, placing: Placing): void {
  const { x, y, scale, slant } = placing;
  let start: Point = { x, y };
  let at = start;
  for (const { command, args } of commands) {
    const points = pairs(args).map(([px, py]): Point => ({
      x: x + scale * (px + slant * py),
      y: y - scale * py,
    }));
    const [first = start, second = start, third = start] = points;
    if (command === 'moveTo') start = first;
    else if (command === 'quadraticCurveTo') outline.curve(at, first, second);
    else if (command === 'bezierCurveTo') outline.cubic(at, [first, second, third]);
    else outline.line(at, first);
    at = points.at(-1) ?? start;
  }
}

function pairs(numbers: readonly number[]): [number, number][] {
  return Array.from({ length: numbers.length / 2 }, (_, n) => [
    numbers[n * 2] ?? 0,
    numbers[n * 2 + 1] ?? 0,
  ]);
}
