// The cells of an emulated terminal, copied into flat arrays that are transferred to another thread, and the rows and
// styles made from them there. Copying is cheap; making rows is not.

import type { Colour, Row, Style, Underline } from '../view/snapshot.ts';
import { CELL_NUMBERS, CODE_POINT, COMBINED, WIDTH_SHIFT } from './xterm.ts';
import type { Extended, ScreenBuffer, Xterm } from './xterm.ts';

export interface Grid {
  readonly cols: number;
  readonly rows: number;
  /** Rows of scrollback first, then the screen; three numbers per cell, as in xterm.js. */
  readonly data: Uint32Array<ArrayBuffer>;
  readonly wrapped: Uint8Array<ArrayBuffer>;
  /** JSON of `Extras`: as objects, hundreds of thousands of them would block the receiving thread. */
  readonly extras: Uint8Array<ArrayBuffer>;
}

/** What does not fit into a cell's numbers, by the index of the cell. */
interface Extras {
  /** Characters with combining marks. */
  readonly clusters: readonly (readonly [at: number, text: string])[];
  /** Underline styles and colours, and links by their number. */
  readonly extended: readonly (readonly [at: number, ext: number, link: number])[];
  readonly links: readonly string[];
}

type Extension = Pick<Extended, '_ext' | 'urlId'>;

/** An empty cell of width 1. */
const EMPTY = 1 << WIDTH_SHIFT;
/** Styles above this number are shown as the default. */
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
/** All bits set means the default: a colour was set and reset. */
const UNDERLINE_COLOUR = 0x3ffffff;
const UNDERLINES: readonly Underline[] = ['none', 'single', 'double', 'curly', 'dotted', 'dashed'];

export function readGrid(
  { terminal, inner }: Xterm,
  links: readonly string[],
  scrollback: number,
  buffer: ScreenBuffer = inner._bufferService.buffers.active,
): Grid {
  const { cols, rows } = terminal;
  const above = Math.min(scrollback, buffer.ybase);
  const height = above + rows;
  const data = new Uint32Array(height * cols * CELL_NUMBERS);
  const wrapped = new Uint8Array(height);
  const clusters: [number, string][] = [];
  const extended: [number, number, number][] = [];
  for (let row = 0; row < height; row += 1) {
    const line = buffer.lines.get(buffer.ybase - above + row);
    wrapped[row] = line.isWrapped ? 1 : 0;
    const end = Math.min(cols, line.length);
    data.set(line._data.subarray(0, end * CELL_NUMBERS), row * cols * CELL_NUMBERS);
    for (let col = end; col < cols; col += 1) data[(row * cols + col) * CELL_NUMBERS] = EMPTY;
    // Both may hold entries of earlier contents; the cell's own numbers say whether they count.
    for (const [col, text] of Object.entries(line._combined))
      clusters.push([row * cols + Number(col), text]);
    for (const [col, each] of Object.entries(line._extendedAttrs))
      if (each) extended.push([row * cols + Number(col), each._ext, each.urlId]);
  }
  const json = JSON.stringify({ clusters, extended, links } satisfies Extras);
  return { cols, rows, data, wrapped, extras: new Uint8Array(Buffer.from(json)) };
}

export function gridRows(grid: Grid): { readonly rows: Row[]; readonly styles: readonly Style[] } {
  const { cols, data, wrapped } = grid;
  const extras = JSON.parse(Buffer.from(grid.extras).toString()) as Extras;
  const clusters = new Map(extras.clusters);
  const extended = new Map<number, Extension>(
    extras.extended.map(([at, _ext, urlId]) => [at, { _ext, urlId }]),
  );
  const styles = new Styles(extras.links);
  const rows = Array.from(wrapped, (isWrapped, row) => {
    const chars: string[] = [];
    const numbers: number[] = [];
    for (let at = row * cols; at < (row + 1) * cols; at += 1) {
      const from = at * CELL_NUMBERS;
      chars.push(charOf(data[from] ?? EMPTY, at, clusters));
      const extension = extended.size === 0 ? undefined : extended.get(at);
      numbers.push(styles.number(data[from + 1] ?? 0, data[from + 2] ?? 0, extension));
    }
    return { chars, styles: numbers, wrapped: isWrapped === 1 };
  });
  return { rows, styles: styles.all };
}

/** Empty for the second half of a wide character. */
function charOf(content: number, at: number, clusters: ReadonlyMap<number, string>): string {
  if ((content & COMBINED) !== 0) return clusters.get(at) ?? ' ';
  if ((content & CODE_POINT) !== 0) return String.fromCodePoint(content & CODE_POINT);
  return content >> WIDTH_SHIFT === 0 ? '' : ' ';
}

/** Numbers the styles. Neighbouring cells mostly share a style, so the last one is checked first. */
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

  number(fg: number, background: number, extension: Extension | undefined): number {
    const bg = (background & ~BG_PROTECTED) >>> 0;
    const extended = (bg & BG_EXTENDED) === 0 ? undefined : extension;
    if (extended === undefined && fg === this.lastFg && bg === this.lastBg) return this.last;
    const key = `${fg}:${bg}:${extended?._ext ?? 0}:${extended?.urlId ?? 0}`;
    let number = this.numbers.get(key);
    if (number === undefined) {
      if (this.all.length >= MAX_STYLES) return 0;
      number = this.all.push(this.style(fg, bg, extended)) - 1;
      this.numbers.set(key, number);
    }
    if (extended === undefined) [this.lastFg, this.lastBg, this.last] = [fg, bg, number];
    return number;
  }

  private style(fg: number, bg: number, extended: Extension | undefined): Style {
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

function underlineOf(extended: Extension | undefined): Underline {
  const style = extended === undefined ? 0 : (extended._ext >>> 26) & 7;
  // A linked cell can have a plain underline, which is in no extension.
  return style === 0 ? 'single' : (UNDERLINES[style] ?? 'single');
}

function colourOf(attribute: number): Colour {
  const mode = attribute & COLOUR_MODE;
  if (mode === 0) return 'default';
  if (mode !== COLOUR_RGB) return attribute & 0xff;
  return `#${(attribute & 0xffffff).toString(16).padStart(6, '0')}`;
}
