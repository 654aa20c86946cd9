// xterm.js without its user interface, and those of its private members that checkpoints, the guard and the fast print
// path need. The dependency is pinned to one exact version because of this file.

import { createRequire } from 'node:module';
import type { Terminal } from '@xterm/headless';

/** Three numbers per cell: content (code point, bit 21 combined, bits 22 and 23 width), foreground, background. */
export const CELL_NUMBERS = 3;
export const COMBINED = 0x200000;
export const CODE_POINT = 0x1fffff;
export const WIDTH_SHIFT = 22;
/** In the background's number: the cell has an underline style or a link. */
export const EXTENDED = 0x10000000;

export interface Extended {
  /**
   * Bits 26 to 28 underline style, below them the underline's colour. The public `ext` returns dashed for every link.
   */
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
  /** Only if the list is full: its first element becomes its last. */
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

/** type 0 asks for a colour, 1 sets and 2 restores one; index 256 and above is foreground, background, cursor. */
interface ColourRequest {
  readonly type: number;
  readonly index: number;
}

export interface Xterm {
  readonly terminal: Terminal;
  readonly inner: Inner;
  /**
   * The private members are those of the known version. Otherwise they are only read: no checkpoints, no fast print path
   * and no guard. The worker's time budget still holds.
   */
  readonly verified: boolean;
}

/** The parser state between two sequences. */
export const GROUND = 0;

let isKnownVersion: boolean | undefined;

export function openXterm(
  cols: number,
  rows: number,
  scrollback: number,
  { verified = (isKnownVersion ??= verifyInternals(open(8, 2, 1))) } = {},
): Xterm {
  return { ...open(cols, rows, scrollback), verified };
}

function open(cols: number, rows: number, scrollback: number): Omit<Xterm, 'verified'> {
  // Loaded here, so that only worker threads load it.
  const { Terminal: Emulator } = createRequire(import.meta.url)(
    '@xterm/headless',
  ) as typeof import('@xterm/headless');
  const options = { cols, rows, scrollback, allowProposedApi: true, logLevel: 'off' } as const;
  const terminal = new Emulator(options);
  const inner = (terminal as unknown as { readonly _core?: Inner })._core;
  if (typeof inner?._inputHandler.parse !== 'function')
    throw new Error('@xterm/headless is not the version of package-lock.json: install it again.');
  return { terminal, inner };
}

/** Prints a few characters on a new terminal of 8 columns and 2 rows, and compares what the private members say. */
export function verifyInternals({ terminal, inner }: Omit<Xterm, 'verified'>): boolean {
  try {
    const { _bufferService: service, _inputHandler: input, coreService } = inner;
    input.parse('a\x1b[31mb\u0301\x1b[4:3mc\r\n2\r\n3\x1b[?25l\x1b[');
    const { active, alt } = service.buffers;
    const line = active.lines.get(0);
    const cell = (col: number): number[] =>
      Array.from(line._data.subarray(col * CELL_NUMBERS, (col + 1) * CELL_NUMBERS));
    const [, red = 0] = cell(1);
    const facts = [
      cell(0).join() === [0x61 | (1 << WIDTH_SHIFT), 0, 0].join(),
      ((cell(1)[0] ?? 0) & COMBINED) !== 0 && line._combined[1] === 'b\u0301',
      (red & 0xff) === 1 && input._curAttrData.fg !== 0,
      ((cell(2)[2] ?? 0) & EXTENDED) !== 0 && (line._extendedAttrs[2]?._ext ?? 0) >>> 26 === 3,
      active !== alt && active.x === 1 && active.y === 1 && active.ybase === 1,
      active.lines.isFull && active.scrollBottom === 1,
      coreService.isCursorHidden && coreService.decPrivateModes['wraparound'] === true,
      input._parser.currentState !== GROUND,
    ];
    const parser = input._parser;
    const methods: readonly (readonly [object, string])[] = [
      [active.lines, 'recycle push trimStart'],
      [active, 'getBlankLine'],
      [line, 'addCodepointToCell'],
      [service, 'scroll'],
      [service.buffers, 'activateAltBuffer'],
      [input, 'print _eraseAttrData _eraseInBufferLine _resetBufferLine'],
      [parser, 'setPrintHandler registerCsiHandler reset'],
      [inner._oscLinkService, 'registerLink addLineToLink'],
    ];
    const collectors = Object.values(parser._oscParser._handlers).flat();
    parser.reset();
    return (
      facts.every(Boolean) &&
      methods.every(([owner, names]) => hasMethods(owner, names)) &&
      collectors.some((each) => hasMethods(each, 'put')) &&
      parser.currentState === GROUND
    );
  } catch {
    return false;
  } finally {
    terminal.dispose();
  }
}

function hasMethods(owner: object, names: string): boolean {
  return names.split(' ').every((name) => typeof Reflect.get(owner, name) === 'function');
}
