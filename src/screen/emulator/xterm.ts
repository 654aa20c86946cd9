// The emulator we use, xterm.js without its window, and those of its inner parts that it does not offer but that a
// checkpoint, the guard and fast reading need. The dependency is pinned to one exact version because of this file.

import { createRequire } from 'node:module';
import type { Terminal } from '@xterm/headless';

/** Three numbers per cell: content (code point, bit 21 combined, bits 22 and 23 width), foreground, background. */
export const CELL_NUMBERS = 3;
export const COMBINED = 0x200000;
export const CODE_POINT = 0x1fffff;
export const WIDTH_SHIFT = 22;
/** In the background's number: the cell has an underline of some kind, or a link. */
export const EXTENDED = 0x10000000;

export interface Extended {
  /** Bits 26 to 28 underline style, below them the underline's colour. `ext` itself answers dashed for every link. */
  _ext: number;
  urlId: number;
  clone(): Extended;
}

export interface Attributes {
  fg: number;
  bg: number;
  extended: Extended;
}

export interface Line {
  _data: Uint32Array;
  _combined: Record<number, string>;
  _extendedAttrs: Record<number, Extended | undefined>;
  length: number;
  isWrapped: boolean;
  addCodepointToCell(index: number, codePoint: number, width: number): void;
}

interface Lines {
  readonly length: number;
  readonly maxLength: number;
  readonly isFull: boolean;
  /** Of a full list: its first element becomes its last. */
  recycle(): Line;
  get(index: number): Line;
  push(line: Line): void;
  trimStart(count: number): void;
}

export type Charset = Record<string, string> | null | undefined;

export interface ScreenBuffer {
  readonly lines: Lines;
  ydisp: number;
  ybase: number;
  x: number;
  y: number;
  scrollTop: number;
  scrollBottom: number;
  tabs: Record<number, boolean | undefined>;
  savedX: number;
  savedY: number;
  savedCurAttrData: Attributes;
  savedCharset: Charset;
  getBlankLine(attributes: Attributes): Line;
}

interface Parameters {
  readonly params: Int32Array;
  readonly length: number;
}

export interface StringCollector {
  _data: string;
  _hitLimit: boolean;
  put(data: Uint32Array, start: number, end: number): void;
}

export interface FunctionId {
  readonly prefix?: string;
  readonly intermediates?: string;
  readonly final: string;
}

export interface Parser {
  readonly currentState: number;
  precedingJoinState: number;
  readonly _oscParser: { readonly _handlers: Record<number, StringCollector[]> };
  readonly _dcsParser: { readonly _handlers: Record<number, StringCollector[]> };
  registerCsiHandler(id: FunctionId, answer: (parameters: Parameters) => boolean): void;
  setPrintHandler(print: (data: Uint32Array, start: number, end: number) => void): void;
  reset(): void;
  registerEscHandler(id: FunctionId, answer: () => boolean): void;
}

export interface Inner {
  readonly _bufferService: {
    readonly buffers: {
      readonly active: ScreenBuffer;
      readonly normal: ScreenBuffer;
      readonly alt: ScreenBuffer;
      activateAltBuffer(): void;
    };
    scroll(erased: Attributes, isWrapped?: boolean): void;
  };
  readonly _charsetService: { charset: Charset; glevel: number; _charsets: Charset[] };
  readonly _oscLinkService: {
    registerLink(link: { readonly id?: string; readonly uri: string }): number;
    addLineToLink(id: number, y: number): void;
  };
  readonly coreService: {
    isCursorHidden: boolean;
    isCursorInitialized: boolean;
    modes: Record<string, boolean>;
    decPrivateModes: Record<string, boolean | string | undefined>;
  };
  readonly coreMouseService: { activeProtocol: string; activeEncoding: string };
  readonly _inputHandler: {
    readonly _parser: Parser;
    readonly _curAttrData: Attributes;
    parse(text: string | Uint8Array): void;
    print(data: Uint32Array, start: number, end: number): void;
    _eraseAttrData(): Attributes;
    _eraseInBufferLine(
      row: number,
      start: number,
      end: number,
      clearWrap: boolean,
      respectProtect: boolean,
    ): void;
    _resetBufferLine(row: number, respectProtect: boolean): void;
    onColor(listener: (requests: readonly ColourRequest[]) => void): void;
  };
}

/** type 0 asks for a colour, 1 sets and 2 restores one; an index from 256 on is foreground, background, cursor. */
interface ColourRequest {
  readonly type: number;
  readonly index: number;
}

export interface Xterm {
  readonly terminal: Terminal;
  readonly inner: Inner;
}

/** The parser stands between two sequences. */
export const GROUND = 0;

export function openXterm(cols: number, rows: number, scrollback: number): Xterm {
  // Loaded here, so that only the worker ever pays for it.
  const { Terminal: Emulator } = createRequire(import.meta.url)(
    '@xterm/headless',
  ) as typeof import('@xterm/headless');
  const terminal = new Emulator({
    cols,
    rows,
    scrollback,
    allowProposedApi: true,
    logLevel: 'off',
  });
  return { terminal, inner: (terminal as unknown as { readonly _core: Inner })._core };
}
