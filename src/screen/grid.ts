// The cells of an emulated terminal as flat numbers, which cross from the worker to the main thread without being copied,
// and the rows that are made of them there.

import type { Colour, Row, Style, Underline } from './snapshot.ts';
import { CELL_NUMBERS, CODE_POINT, COMBINED, WIDTH_SHIFT } from './xterm.ts';
import type { Extended, Line, Xterm } from './xterm.ts';

export interface Grid {
  readonly cols: number;
  readonly rows: number;
  /** Rows of scrollback first, then the screen; `cols` numbers each: a code point, 0 for the second half of a wide
   *  character, or from CLUSTER on an index into `clusters`. */
  readonly codes: Uint32Array<ArrayBuffer>;
  /** For each cell an index into `styles`. */
  readonly styleOf: Uint16Array<ArrayBuffer>;
  readonly wrapped: Uint8Array<ArrayBuffer>;
  readonly clusters: readonly string[];
  readonly styles: readonly Style[];
}

const CLUSTER = 0x80000000;
const SPACE = 0x20;
/** More styles than this on one screen are shown in the default one. */
const MAX_STYLES = 0xffff;

const FG_INVERSE = 0x4000000;
const FG_BOLD = 0x8000000;
const FG_UNDERLINE = 0x10000000;
const FG_BLINK = 0x20000000;
const FG_INVISIBLE = 0x40000000;
const FG_STRIKETHROUGH = 0x80000000;
const BG_ITALIC = 0x4000000;
const BG_DIM = 0x8000000;
const BG_EXTENDED = 0x10000000;
const BG_PROTECTED = 0x20000000;
const BG_OVERLINE = 0x40000000;
const COLOUR_MODE = 0x3000000;
const COLOUR_RGB = 0x3000000;
/** With all bits set it stands for the default: it was set and taken back. */
const UNDERLINE_COLOUR = 0x3ffffff;
const UNDERLINES: readonly Underline[] = ['none', 'single', 'double', 'curly', 'dotted', 'dashed'];

export function readGrid(
  { terminal, inner }: Xterm,
  links: readonly string[],
  scrollback: number,
): Grid {
  const { active } = inner._bufferService.buffers;
  const { cols, rows } = terminal;
  const above = Math.min(scrollback, active.ybase);
  const height = above + rows;
  const codes = new Uint32Array(height * cols).fill(SPACE);
  const styleOf = new Uint16Array(height * cols);
  const wrapped = new Uint8Array(height);
  const clusters: string[] = [];
  const styles = new Styles(links);
  for (let row = 0; row < height; row += 1) {
    const line = active.lines.get(active.ybase - above + row);
    wrapped[row] = line.isWrapped ? 1 : 0;
    const end = Math.min(cols, line.length);
    for (let col = 0; col < end; col += 1) {
      const at = row * cols + col;
      const content = line._data[col * CELL_NUMBERS] ?? 0;
      if ((content & COMBINED) !== 0)
        codes[at] = CLUSTER + clusters.push(line._combined[col] ?? ' ') - 1;
      else if ((content & CODE_POINT) !== 0) codes[at] = content & CODE_POINT;
      else if (content >> WIDTH_SHIFT === 0) codes[at] = 0;
      styleOf[at] = styles.number(line, col);
    }
  }
  return { cols, rows, codes, styleOf, wrapped, clusters, styles: styles.all };
}

export function gridRows(grid: Grid): Row[] {
  const { cols, codes, styleOf, wrapped, clusters } = grid;
  return Array.from(wrapped, (isWrapped, row) => ({
    chars: Array.from(codes.subarray(row * cols, (row + 1) * cols), (code) => {
      if (code === 0) return '';
      return code < CLUSTER ? String.fromCodePoint(code) : (clusters[code - CLUSTER] ?? ' ');
    }),
    styles: Array.from(styleOf.subarray(row * cols, (row + 1) * cols)),
    wrapped: isWrapped === 1,
  }));
}

/** Styles by number, each once. Neighbouring cells mostly share theirs, so the last one is looked at first. */
class Styles {
  readonly all: Style[] = [{ fg: 'default', bg: 'default' }];
  private readonly links: readonly string[];
  private readonly numbers = new Map<string, number>([['0:0:0:0', 0]]);
  private lastFg = 0;
  private lastBg = 0;
  private last = 0;

  constructor(links: readonly string[]) {
    this.links = links;
  }

  number(line: Line, col: number): number {
    const fg = line._data[col * CELL_NUMBERS + 1] ?? 0;
    const bg = ((line._data[col * CELL_NUMBERS + 2] ?? 0) & ~BG_PROTECTED) >>> 0;
    const extended = (bg & BG_EXTENDED) === 0 ? undefined : line._extendedAttrs[col];
    if (extended === undefined && fg === this.lastFg && bg === this.lastBg) return this.last;
    const key = `${fg}:${bg}:${extended?._ext ?? 0}:${extended?.urlId ?? 0}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.all.length < MAX_STYLES ? this.all.push(this.style(fg, bg, extended)) - 1 : 0;
      this.numbers.set(key, number);
    }
    if (extended === undefined) [this.lastFg, this.lastBg, this.last] = [fg, bg, number];
    return number;
  }

  private style(fg: number, bg: number, extended: Extended | undefined): Style {
    const underline = (fg & FG_UNDERLINE) === 0 ? 'none' : underlineOf(extended);
    const link = extended === undefined ? undefined : this.links[extended.urlId - 1];
    const drawn = (extended?._ext ?? 0) & UNDERLINE_COLOUR;
    const underlineColour = drawn === UNDERLINE_COLOUR ? 'default' : colourOf(drawn);
    return {
      fg: colourOf(fg),
      bg: colourOf(bg),
      ...((fg & FG_BOLD) !== 0 && { bold: true }),
      ...((bg & BG_DIM) !== 0 && { dim: true }),
      ...((bg & BG_ITALIC) !== 0 && { italic: true }),
      ...(underline !== 'none' && { underline }),
      ...(underlineColour !== 'default' && { underlineColour }),
      ...((fg & FG_BLINK) !== 0 && { blink: true }),
      ...((fg & FG_INVERSE) !== 0 && { inverse: true }),
      ...((fg & FG_INVISIBLE) !== 0 && { invisible: true }),
      ...((fg & FG_STRIKETHROUGH) !== 0 && { strikethrough: true }),
      ...((bg & BG_OVERLINE) !== 0 && { overline: true }),
      ...(link !== undefined && { link }),
    };
  }
}

function underlineOf(extended: Extended | undefined): Underline {
  const style = extended === undefined ? 0 : (extended._ext >>> 26) & 7;
  // A cell can be linked and still have a plain underline, which then stands in no extension.
  return style === 0 ? 'single' : (UNDERLINES[style] ?? 'single');
}

function colourOf(attribute: number): Colour {
  const mode = attribute & COLOUR_MODE;
  if (mode === 0) return 'default';
  if (mode !== COLOUR_RGB) return attribute & 0xff;
  return `#${(attribute & 0xffffff).toString(16).padStart(6, '0')}`;
}
