// The characters of a terminal as coverage, each drawn once: by rule where lines must meet, else from the fonts that come
// with this package, else from a font of the machine (for scripts ours do not have), else as an empty box.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { characterWidth } from './character-width.ts';
import { drawnGlyph } from './drawn-glyphs.ts';
import { Outline } from './outline.ts';
import type { Coverage } from './outline.ts';
import { TrueTypeFont } from './truetype.ts';

export interface Metrics {
  readonly cellWidth: number;
  readonly cellHeight: number;
  readonly baseline: number;
  /** Pixels per em. */
  readonly fontSize: number;
  /** Thickness of underlines. */
  readonly line: number;
}

/** Of a letter at scale 1, in pixels: the cell then is 9 by 17. */
const FONT_SIZE = 15;
const FACES = ['', '-Bold', '-Oblique', '-BoldOblique'] as const;
const BOLD = 1;
const ITALIC = 2;
/** How far an upright font leans when it has to stand in for an italic one. */
const SLANT = 0.2;
/** Where a machine keeps its fonts. */
const FOLDERS = [
  '/usr/share/fonts',
  '/usr/local/share/fonts',
  '/Library/Fonts',
  '/System/Library/Fonts',
];
const MAX_FONT_FILES = 400;
/** A screen of all of Unicode is no reason to keep all of it. */
const MAX_KEPT = 20_000;

export class Glyphs {
  readonly metrics: Metrics;
  private readonly faces: (TrueTypeFont | undefined)[] = [];
  private readonly kept = new Map<string, Coverage>();
  private machineFonts: Iterator<TrueTypeFont> | undefined;
  private readonly openedFonts: TrueTypeFont[] = [];

  constructor(scale: number) {
    const fontSize = FONT_SIZE * scale;
    const font = this.face(0);
    const em = fontSize / font.unitsPerEm;
    const baseline = Math.round(font.ascent * em);
    // Rounded up: the underscore lies at the very bottom.
    const cellHeight = baseline + Math.ceil(font.descent * em);
    this.metrics = {
      cellWidth: Math.round(font.advance(font.glyph(0x4d)) * em),
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
    let coverage = this.kept.get(key);
    if (coverage === undefined) {
      if (this.kept.size >= MAX_KEPT) this.kept.clear();
      coverage = this.draw(text, columns, style);
      this.kept.set(key, coverage);
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
    this.drawCharacter(base, outline, columns, style);
    for (const mark of marks) {
      // Selectors and joiners have no shape; whatever else has no width stands over the character.
      if (characterWidth(mark) === 0 && this.face(style).glyph(mark) !== 0)
        this.drawCharacter(mark, outline, columns, style);
    }
    return outline.coverage();
  }

  private drawCharacter(codePoint: number, outline: Outline, columns: number, style: number): void {
    const { baseline, fontSize, cellWidth } = this.metrics;
    const own = this.face(style).glyph(codePoint) === 0 ? this.face(0) : this.face(style);
    const glyph = own.glyph(codePoint);
    if (glyph !== 0) {
      const slant = own === this.face(style) || (style & ITALIC) === 0 ? 0 : SLANT;
      return own.draw(glyph, outline, {
        x: 0,
        y: baseline,
        scale: fontSize / own.unitsPerEm,
        slant,
      });
    }
    const other = this.machineFont(codePoint);
    if (other === undefined) return this.drawMissing(outline, columns);
    const found = other.glyph(codePoint);
    const room = cellWidth * columns;
    const em = fontSize / other.unitsPerEm;
    const advance = other.advance(found) * em;
    // Made smaller where it would not fit, and set in the middle.
    const fit = Math.min(1, room / Math.max(advance, 1));
    const slant = (style & ITALIC) === 0 ? 0 : SLANT;
    const x = (room - advance * fit) / 2;
    other.draw(found, outline, { x, y: baseline, scale: em * fit, slant });
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

  private face(style: number): TrueTypeFont {
    let font = this.faces[style];
    if (font === undefined) {
      const file = new URL(`../../fonts/DejaVuSansMono${FACES[style] ?? ''}.ttf`, import.meta.url);
      font = TrueTypeFont.open(readFileSync(fileURLToPath(file)));
      if (font === undefined)
        throw new Error('A font that belongs to this package cannot be read.');
      this.faces[style] = font;
    }
    return font;
  }

  /** Fonts are opened one after the other, only as long as none of them has the character. */
  private machineFont(codePoint: number): TrueTypeFont | undefined {
    const known = this.openedFonts.find((font) => font.glyph(codePoint) !== 0);
    if (known !== undefined) return known;
    this.machineFonts ??= openMachineFonts();
    for (let next = this.machineFonts.next(); next.done !== true; next = this.machineFonts.next()) {
      this.openedFonts.push(next.value);
      if (next.value.glyph(codePoint) !== 0) return next.value;
    }
    return undefined;
  }
}

function* openMachineFonts(): Generator<TrueTypeFont> {
  // Upright and regular ones first.
  const styled = (path: string): number =>
    /bold|italic|oblique|light|thin|black/i.test(path) ? 1 : 0;
  const paths = FOLDERS.flatMap(fontFiles).toSorted((a, b) => styled(a) - styled(b));
  for (const path of paths.slice(0, MAX_FONT_FILES)) {
    let bytes: Buffer;
    try {
      bytes = readFileSync(path);
    } catch {
      // Not ours to read, or gone: some other font may do.
      continue;
    }
    const font = TrueTypeFont.open(bytes);
    if (font !== undefined) yield font;
  }
}

function fontFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.(?:ttf|ttc|otf)$/i.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted();
  } catch {
    return [];
  }
}
