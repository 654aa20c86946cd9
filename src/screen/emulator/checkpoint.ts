// A terminal's complete state as bytes, so that a long journal need not be replayed from its beginning. A restored
// terminal continues exactly like the original: both screens with scrollback, cursor and saved cursor, attributes,
// tabs, margins, modes, character sets.

import { deflateSync, inflateSync } from 'node:zlib';
import type { Skipped } from '../view/snapshot.ts';
import { CELL_NUMBERS, COMBINED, EXTENDED } from './xterm.ts';
import type { Attributes, Charset, Extended, Line, ScreenBuffer, Xterm } from './xterm.ts';

/** Changes with the format, with the emulator's version and with the guard's limits. */
const FORMAT = 'holdfast screen 1 xterm 6.0.0';

/** State that is not in the emulator. */
interface Extra {
  readonly title: string;
  readonly savedTitles: readonly string[];
  readonly links: readonly string[];
  readonly scrollback: number;
  readonly skipped: readonly Skipped[];
}

interface SavedAttributes {
  readonly fg: number;
  readonly bg: number;
  readonly ext: number;
  readonly url: number;
}

interface SavedLine {
  /** Cells up to the last that is not empty. */
  readonly cells: number;
  /** All cells; differs from the columns only on the screen that is not shown. */
  readonly length: number;
  readonly wrapped?: 1;
  readonly combined?: readonly (readonly [number, string])[];
  readonly extended?: readonly (readonly [number, number, number])[];
}

interface SavedBuffer {
  readonly lines: readonly SavedLine[];
  readonly place: Pick<
    ScreenBuffer,
    'ydisp' | 'ybase' | 'x' | 'y' | 'scrollTop' | 'scrollBottom' | 'savedX' | 'savedY'
  >;
  readonly tabs: readonly number[];
  readonly savedAttributes: SavedAttributes;
  readonly savedCharset: Charset;
}

interface Saved {
  readonly format: string;
  readonly cols: number;
  readonly rows: number;
  readonly extra: Extra;
  readonly normal: SavedBuffer;
  readonly alt: SavedBuffer;
  readonly onAlt: boolean;
  readonly attributes: SavedAttributes;
  readonly charset: Charset;
  readonly glevel: number;
  readonly charsets: readonly Charset[];
  readonly cursorHidden: boolean;
  readonly cursorInitialized: boolean;
  readonly modes: Record<string, boolean>;
  readonly decModes: Record<string, boolean | string | undefined>;
  readonly mouse: readonly [protocol: string, encoding: string];
  readonly joinState: number;
}

export function encodeCheckpoint({ terminal, inner }: Xterm, extra: Extra): Uint8Array {
  const { normal, alt, active } = inner._bufferService.buffers;
  const cells: Uint32Array[] = [];
  const { coreService, coreMouseService, _charsetService: charsets, _inputHandler: input } = inner;
  const saved: Saved = {
    format: FORMAT,
    cols: terminal.cols,
    rows: terminal.rows,
    extra,
    normal: saveBuffer(normal, cells),
    alt: saveBuffer(alt, cells),
    onAlt: active === alt,
    attributes: saveAttributes(input._curAttrData),
    charset: charsets.charset ?? null,
    glevel: charsets.glevel,
    charsets: Array.from(charsets._charsets, (charset) => charset ?? null),
    cursorHidden: coreService.isCursorHidden,
    cursorInitialized: coreService.isCursorInitialized,
    modes: coreService.modes,
    decModes: coreService.decPrivateModes,
    mouse: [coreMouseService.activeProtocol, coreMouseService.activeEncoding],
    joinState: input._parser.precedingJoinState,
  };
  const head = Buffer.from(JSON.stringify(saved));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(head.length);
  const body = cells.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  return new Uint8Array(deflateSync(Buffer.concat([length, head, ...body]), { level: 1 }));
}

export interface DecodedCheckpoint {
  readonly cols: number;
  readonly rows: number;
  readonly extra: Extra;
  /** Restores everything else into a new emulator of this size. */
  into(xterm: Xterm): void;
}

/** Throws unless the bytes were written completely and by this version. */
export function decodeCheckpoint(bytes: Uint8Array): DecodedCheckpoint {
  const raw = inflateSync(bytes);
  const head = raw.readUInt32LE(0);
  const saved = JSON.parse(raw.toString('utf8', 4, 4 + head)) as Saved;
  if (saved.format !== FORMAT) throw new Error('This checkpoint is of another version.');
  // A copy, because a Uint32Array must be aligned.
  const cells = new Uint32Array(
    raw.buffer.slice(raw.byteOffset + 4 + head, raw.byteOffset + raw.length),
  );
  const { cols, rows, extra } = saved;
  return { cols, rows, extra, into: (xterm) => restore(xterm, saved, cells) };
}

function restore({ inner }: Xterm, saved: Saved, cells: Uint32Array): void {
  const { buffers } = inner._bufferService;
  if (saved.onAlt) buffers.activateAltBuffer();
  const { coreService, coreMouseService, _charsetService: charsets, _inputHandler: input } = inner;
  const model = input._curAttrData.extended;
  const rest = restoreBuffer(buffers.normal, saved.normal, cells, model);
  restoreBuffer(buffers.alt, saved.alt, rest, model);
  restoreAttributes(input._curAttrData, saved.attributes);
  charsets.charset = saved.charset;
  charsets.glevel = saved.glevel;
  charsets._charsets = [...saved.charsets];
  coreService.isCursorHidden = saved.cursorHidden;
  coreService.isCursorInitialized = saved.cursorInitialized;
  coreService.modes = { ...saved.modes };
  coreService.decPrivateModes = { ...saved.decModes };
  [coreMouseService.activeProtocol, coreMouseService.activeEncoding] = saved.mouse;
  input._parser.precedingJoinState = saved.joinState;
}

function saveBuffer(buffer: ScreenBuffer, cells: Uint32Array[]): SavedBuffer {
  const lines: SavedLine[] = [];
  for (let index = 0; index < buffer.lines.length; index += 1) {
    const line = buffer.lines.get(index);
    const used = usedCells(line);
    if (used > 0) cells.push(line._data.subarray(0, used * CELL_NUMBERS));
    lines.push(saveLine(line, used));
  }
  const { ydisp, ybase, x, y, scrollTop, scrollBottom, savedX, savedY } = buffer;
  return {
    lines,
    place: { ydisp, ybase, x, y, scrollTop, scrollBottom, savedX, savedY },
    tabs: Object.keys(buffer.tabs)
      .filter((col) => buffer.tabs[Number(col)] === true)
      .map(Number),
    savedAttributes: saveAttributes(buffer.savedCurAttrData),
    savedCharset: buffer.savedCharset ?? null,
  };
}

const EMPTY_CONTENT = 1 << 22;

function usedCells(line: Line): number {
  const data = line._data;
  let used = line.length;
  for (; used > 0; used -= 1) {
    const at = (used - 1) * CELL_NUMBERS;
    if (data[at] !== EMPTY_CONTENT || data[at + 1] !== 0 || data[at + 2] !== 0) break;
  }
  return used;
}

function saveLine(line: Line, cells: number): SavedLine {
  const combined = entriesWithFlag(line, line._combined, cells, { at: 0, flag: COMBINED });
  const extended = entriesWithFlag(line, line._extendedAttrs, cells, { at: 2, flag: EXTENDED });
  return {
    cells,
    length: line.length,
    ...(line.isWrapped && { wrapped: 1 }),
    ...(combined.length > 0 && { combined }),
    ...(extended.length > 0 && {
      extended: extended.map(([col, attributes]) => [
        col,
        attributes?._ext ?? 0,
        attributes?.urlId ?? 0,
      ]),
    }),
  };
}

/** Entries of cells that have the flag. Entries without it are left over from earlier contents. */
function entriesWithFlag<T>(
  { _data: data }: Line,
  entries: Readonly<Record<number, T>>,
  cells: number,
  { at, flag }: { readonly at: number; readonly flag: number },
): [number, T][] {
  const found: [number, T][] = [];
  // Nearly every line has none, and Object.keys would cost more than this loop.
  for (const key in entries) {
    const col = Number(key);
    if (col < cells && ((data[col * CELL_NUMBERS + at] ?? 0) & flag) !== 0)
      found.push([col, entries[col] as T]);
  }
  return found;
}

function restoreBuffer(
  buffer: ScreenBuffer,
  saved: SavedBuffer,
  cells: Uint32Array,
  model: Extended,
): Uint32Array {
  const blank = { fg: 0, bg: 0, extended: model };
  buffer.lines.trimStart(buffer.lines.length);
  let at = 0;
  for (const { cells: used, length, wrapped, combined, extended } of saved.lines) {
    const line = buffer.getBlankLine(blank);
    if (length !== line.length) setLength(line, length);
    line._data.set(cells.subarray(at, at + used * CELL_NUMBERS));
    at += used * CELL_NUMBERS;
    line.isWrapped = wrapped === 1;
    for (const [col, text] of combined ?? []) line._combined[col] = text;
    for (const [col, ext, url] of extended ?? []) {
      line._extendedAttrs[col] = restoreExtended(model, ext, url);
    }
    buffer.lines.push(line);
  }
  Object.assign(buffer, saved.place);
  buffer.tabs = Object.fromEntries(saved.tabs.map((col) => [col, true]));
  restoreAttributes(buffer.savedCurAttrData, saved.savedAttributes);
  buffer.savedCharset = saved.savedCharset;
  return cells.subarray(at);
}

function setLength(line: Line, length: number): void {
  const data = new Uint32Array(length * CELL_NUMBERS);
  for (let at = 0; at < data.length; at += CELL_NUMBERS) data[at] = EMPTY_CONTENT;
  line._data = data;
  line.length = length;
}

function saveAttributes({ fg, bg, extended }: Attributes): SavedAttributes {
  return { fg, bg, ext: extended._ext, url: extended.urlId };
}

function restoreAttributes(attributes: Attributes, saved: SavedAttributes): void {
  attributes.fg = saved.fg;
  attributes.bg = saved.bg;
  attributes.extended = restoreExtended(attributes.extended, saved.ext, saved.url);
}

function restoreExtended(model: Extended, ext: number, url: number): Extended {
  const extended = model.clone();
  extended._ext = ext;
  extended.urlId = url;
  return extended;
}
