// The glyphs of a terminal, each drawn once: by rules if lines must meet, else from the bundled fonts (letters, then
// emoji), else from a font of the machine (for other scripts), else as an empty box.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { characterWidth } from '../emulator/character-width.ts';
import { drawnGlyph } from './drawn-glyphs.ts';
import { BrokenFont, Font } from './font.ts';
import { MachineFonts } from './machine-fonts.ts';
import { Outline } from './outline.ts';
import type { Coverage } from './outline.ts';

export interface Metrics {
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly baseline: number;
  /** Pixels per em. */
  readonly fontSize: number;
  /** Thickness of underlines. */
  readonly line: number;
}

/** The font size at scale 1, in pixels: a cell is then 9 by 17. */
const FONT_SIZE = 15;
const FACES = [
  'DejaVuSansMono',
  'DejaVuSansMono-Bold',
  'DejaVuSansMono-Oblique',
  'DejaVuSansMono-BoldOblique',
  'NotoEmoji-Regular',
] as const;
const BOLD = 1;
const ITALIC = 2;
const EMOJI = 4;
/** The slant of an upright font that replaces an italic one. */
const SLANT = 0.2;
/** A screen with all of Unicode must not fill the memory. */
const MAX_CACHED = 20_000;

export class Glyphs {
  readonly metrics: Metrics;
  /** Characters that were drawn as boxes, because no font has them. */
  readonly missing = new Set<string>();
  private readonly faces: (Font | undefined)[] = [];
  private readonly cache = new Map<string, Coverage>();
  private readonly machineFonts: MachineFonts;

  constructor(scale: number, machineFonts = new MachineFonts()) {
    this.machineFonts = machineFonts;
    const fontSize = FONT_SIZE * scale;
    const font = this.face(0);
    const em = fontSize / font.unitsPerEm;
    const baseline = Math.round(font.ascent * em);
    // Rounded up, because the underscore is at the very bottom.
    const cellHeight = baseline + Math.ceil(font.descent * em);
    this.metrics = {
      cellWidth: Math.round(font.advance(0x4d) * em),
      cellHeight,
      baseline,
      fontSize,
      line: Math.max(1, Math.round(scale)),
    };
  }

  /** `columns` wide, one cell high. */
  glyph(text: string, columns: number, bold: boolean, italic: boolean): Coverage {
    const style = (bold ? BOLD : 0) | (italic ? ITALIC : 0);
    const key = `${style}${columns}${text}`;
    let coverage = this.cache.get(key);
    if (coverage === undefined) {
      if (this.cache.size >= MAX_CACHED) {
        this.cache.clear();
        this.missing.clear();
      }
      coverage = this.draw(text, columns, style);
      this.cache.set(key, coverage);
    }
    return coverage;
  }

  private draw(text: string, columns: number, style: number): Coverage {
    const { cellWidth, cellHeight } = this.metrics;
    const width = cellWidth * columns;
    const [base = 0x20, ...marks] = Array.from(
      text,
      (character) => character.codePointAt(0) ?? 0x20,
    );
    const drawn = marks.length === 0 ? drawnGlyph(base, width, cellHeight) : undefined;
    if (drawn !== undefined) return drawn;
    const outline = new Outline(width, cellHeight);
    if (!this.drawCharacter(base, outline, columns, style)) this.missing.add(text);
    for (const mark of marks) {
      // Selectors and joiners have no shape; other zero-width characters are drawn over the character.
      if (characterWidth(mark) === 0 && this.face(style).has(mark))
        this.drawCharacter(mark, outline, columns, style);
    }
    return outline.coverage();
  }

  /** Whether any font has it. */
  private drawCharacter(
    codePoint: number,
    outline: Outline,
    columns: number,
    style: number,
  ): boolean {
    const { baseline, fontSize } = this.metrics;
    const own = this.face(style).has(codePoint) ? this.face(style) : this.face(0);
    if (own.has(codePoint)) {
      const slant = own === this.face(style) || (style & ITALIC) === 0 ? 0 : SLANT;
      own.draw(codePoint, outline, { x: 0, y: baseline, scale: fontSize / own.unitsPerEm, slant });
      return true;
    }
    const isItalic = (style & ITALIC) !== 0;
    try {
      const emoji = this.face(EMOJI);
      const hasEmoji = emoji.has(codePoint);
      const other = hasEmoji ? emoji : this.machineFonts.find(codePoint, (style & BOLD) !== 0);
      const slant = isItalic && !hasEmoji ? SLANT : 0;
      if (other) this.drawScaled(other, codePoint, outline, { columns, slant });
      if (other) return true;
    } catch (error) {
      // A broken font of the machine is treated like one without the character.
      if (!(error instanceof BrokenFont)) throw error;
    }
    this.drawMissing(outline, columns);
    return false;
  }

  private drawScaled(
    font: Font,
    codePoint: number,
    outline: Outline,
    { columns, slant }: { readonly columns: number; readonly slant: number },
  ): void {
    const { baseline, fontSize, cellWidth } = this.metrics;
    const space = cellWidth * columns;
    const em = fontSize / font.unitsPerEm;
    const advance = font.advance(codePoint) * em;
    // Scaled down if it does not fit, and centred.
    const fit = Math.min(1, space / Math.max(advance, 1));
    const x = (space - advance * fit) / 2;
    font.draw(codePoint, outline, { x, y: baseline, scale: em * fit, slant });
  }

  private drawMissing(outline: Outline, columns: number): void {
    const { cellWidth, baseline, line } = this.metrics;
    const [x0, x1, y0, y1] = [
      line,
      cellWidth * columns - line,
      Math.round(baseline * 0.25),
      baseline,
    ];
    const box = (inset: number): { x: number; y: number }[] => [
      { x: x0 + inset, y: y0 + inset },
      { x: x1 - inset, y: y0 + inset },
      { x: x1 - inset, y: y1 - inset },
      { x: x0 + inset, y: y1 - inset },
    ];
    outline.polygon(box(0));
    outline.polygon(box(line).toReversed());
  }

  private face(style: number): Font {
    let font = this.faces[style];
    if (font === undefined) {
      const file = new URL(`../../../fonts/${FACES[style] ?? FACES[0]}.ttf`, import.meta.url);
      font = new Font(readFileSync(fileURLToPath(file)));
      this.faces[style] = font;
    }
    return font;
  }
}
