// A font file, as far as single characters need it: which characters it has, their outlines and advances. The library
// trusts its input; a broken or hostile file goes no further than this module and becomes a `BrokenFont`.

import { createRequire } from 'node:module';
import type { Font as FontFile, PathCommand } from 'fontkitten';
import { RanTooLong, runLimited } from '../../base/limited-run.ts';
import type { Outline, Point } from './outline.ts';

export class BrokenFont extends Error {}

export interface Placement {
  /** The position of the character's origin, on the baseline. */
  readonly x: number;
  readonly y: number;
  /** Pixels per unit. */
  readonly scale: number;
  /** The slant to the right, per unit of height. */
  readonly slant: number;
}

/** The library caches every glyph it has drawn, so the file is reopened after this many. */
const MAX_GLYPHS_CACHED = 2000;
/** The most complex known glyph has under two thousand. */
const MAX_COMMANDS = 20_000;
export class Font {
  readonly unitsPerEm: number;
  private readonly bytes: Buffer;
  private readonly limitMs: number | undefined;
  private file: FontFile;
  private glyphsCached = 0;
  private isGivenUp = false;

  /**
   * The work on one glyph may take `limitMs`; without it the file is trusted. Throws `BrokenFont` if the bytes are no
   * font.
   */
  constructor(bytes: Buffer, limitMs?: number) {
    this.bytes = bytes;
    this.limitMs = limitMs;
    this.file = this.attempt(() => openFile(bytes));
    this.unitsPerEm = this.attempt(() => {
      // Reads the character map, so that later lookups are fast.
      this.file.hasGlyphForCodePoint(0);
      return this.file.unitsPerEm;
    });
    if (!(this.unitsPerEm >= 16 && this.unitsPerEm <= 16_384))
      throw new BrokenFont(`The font has ${this.unitsPerEm} units per em.`);
  }

  get ascent(): number {
    return this.attempt(() => this.file.ascent);
  }

  /** Below the baseline; positive. */
  get descent(): number {
    return this.attempt(() => -this.file.descent);
  }

  has(codePoint: number): boolean {
    return this.attempt(() => this.file.hasGlyphForCodePoint(codePoint), 'quick');
  }

  advance(codePoint: number): number {
    return this.attempt(() => this.file.glyphForCodePoint(codePoint).advanceWidth);
  }

  draw(codePoint: number, outline: Outline, placement: Placement): void {
    this.glyphsCached += 1;
    if (this.glyphsCached > MAX_GLYPHS_CACHED) {
      this.file = this.attempt(() => openFile(this.bytes));
      this.glyphsCached = 1;
    }
    const { commands } = this.attempt(() => this.file.glyphForCodePoint(codePoint).path);
    if (commands.length > MAX_COMMANDS)
      throw new BrokenFont(`A glyph of the font has ${commands.length} parts.`);
    if (commands.some(({ args }) => !args.every(Number.isFinite)))
      throw new BrokenFont('A glyph of the font has coordinates that are no numbers.');
    drawPath(commands, outline, placement);
  }

  private attempt<T>(act: () => T, work?: 'quick'): T {
    const limitMs = work === 'quick' ? undefined : this.limitMs;
    if (this.isGivenUp) throw new BrokenFont('The font took too long before.');
    return throwBroken(() => {
      try {
        return limitMs === undefined ? act() : runLimited(act, limitMs);
      } catch (error) {
        this.isGivenUp = error instanceof RanTooLong;
        throw error;
      }
    });
  }
}

/** Whether a font has a character, by its `cmap` table only. Throws `BrokenFont` if it cannot be read. */
export function characterTest(cmap: Buffer, limitMs: number): (codePoint: number) => boolean {
  const header = Buffer.alloc(28);
  header.write('true\0\x01', 'latin1');
  header.write('cmap', 12, 'latin1');
  header.writeUInt32BE(header.length, 20);
  header.writeUInt32BE(cmap.length, 24);
  const bytes = Buffer.concat([header, cmap]);
  const file = throwBroken(() =>
    runLimited(() => {
      const opened = openFile(bytes);
      opened.hasGlyphForCodePoint(0);
      return opened;
    }, limitMs),
  );
  return (codePoint) => throwBroken(() => file.hasGlyphForCodePoint(codePoint));
}

function throwBroken<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new BrokenFont('The font cannot be read.', { cause: error });
  }
}

/** The first font of a collection. */
function openFile(bytes: Buffer): FontFile {
  // Loaded here, so that only threads that draw load it.
  const { create } = createRequire(import.meta.url)('fontkitten') as typeof import('fontkitten');
  const opened = create(bytes);
  const [first] = opened.isCollection ? opened.fonts : [opened];
  if (first === undefined) throw new Error('The collection is empty.');
  return first;
}

function drawPath(commands: readonly PathCommand[], outline: Outline, placement: Placement): void {
  const { x, y, scale, slant } = placement;
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
