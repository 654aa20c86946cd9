// A fast path for printable ASCII and line ends, which are most of what is printed. For every character xterm.js checks
// for widths, joining, character sets, insert mode and links. This checks once per run and otherwise uses xterm.js.
// Both paths produce the same cells.

import { CELL_NUMBERS, EXTENDED, GROUND, WIDTH_SHIFT } from './xterm.ts';
import type { Inner, Line, ScreenBuffer } from './xterm.ts';

const NARROW = 1 << WIDTH_SHIFT;
const NEW_LINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const DELETE = 0x7f;
/** The join state after a narrow character. */
const AFTER_NARROW = 1 << 1;
/** Shorter stretches go through the parser, together with their surroundings. */
const MIN_STRETCH = 256;

interface Size {
  readonly cols: number;
  readonly rows: number;
}

export class PlainPrint {
  private readonly inner: Inner;
  private readonly size: Size;
  /** A line of empty cells in the current erase colour. */
  private blank: Uint32Array = new Uint32Array(0);

  constructor(inner: Inner, size: Size) {
    this.inner = inner;
    this.size = size;
    const { _inputHandler: input } = inner;
    input._parser.setPrintHandler((data, start, end) => {
      if (this.isPlain()) this.printParsed(data, start, end);
      else if (this.wraps()) input.print(data, start, end);
      // Without autowrap, xterm.js moves the cursor back to the last column for a wide character that does not fit. It
      // looks for a wide character to the left of the cursor only at the start of a call, so the screen would depend on
      // where the bytes were cut. One call per character makes it the same for every cut.
      else for (let at = start; at < end; at += 1) input.print(data, at, at + 1);
    });
  }

  /** Where the first long stretch of plain bytes begins, from `start` on; the end if there is none. */
  static nextStretch(bytes: Uint8Array, start: number): number {
    let from = start;
    for (let at = start; at < bytes.length; at += 1) {
      const byte = bytes[at] as number;
      if (!isPrintable(byte) && byte !== NEW_LINE && byte !== RETURN) from = at + 1;
      else if (at - from >= MIN_STRETCH) return from;
    }
    return bytes.length;
  }

  /** Prints plain bytes from `start` on and returns where they end. Bypasses the parser. */
  print(bytes: Uint8Array, start: number): number {
    const parser = this.inner._inputHandler._parser;
    if (parser.currentState !== GROUND || !this.isPlain()) return start;
    const buffer = this.inner._bufferService.buffers.active;
    let at = start;
    for (;;) {
      const end = this.printRun(buffer, bytes, at, bytes.length);
      if (end > at) parser.precedingJoinState = AFTER_NARROW;
      const byte = end < bytes.length ? bytes[end] : undefined;
      if (byte === NEW_LINE) this.feedLine(buffer);
      else if (byte === RETURN) buffer.x = 0;
      else return end;
      parser.precedingJoinState = 0;
      at = end + 1;
    }
  }

  private wraps(): boolean {
    return this.inner.coreService.decPrivateModes['wraparound'] === true;
  }

  private isPlain(): boolean {
    const { _charsetService: charsets, _inputHandler: input, coreService } = this.inner;
    return (
      !charsets.charset &&
      coreService.modes['insertMode'] !== true &&
      this.wraps() &&
      (input._curAttrData.bg & EXTENDED) === 0
    );
  }

  private printParsed(data: Uint32Array, start: number, end: number): void {
    const { _bufferService: service, _inputHandler: input } = this.inner;
    for (let at = start; at < end;) {
      const plainEnd = this.printRun(service.buffers.active, data, at, end);
      if (plainEnd > at) input._parser.precedingJoinState = AFTER_NARROW;
      for (at = plainEnd; at < end && (data[at] as number) >= DELETE;) at += 1;
      if (at > plainEnd) input.print(data, plainEnd, at);
    }
  }

  /** Prints up to the first character that is not printable ASCII, and returns its index. */
  private printRun(
    buffer: ScreenBuffer,
    codes: Uint8Array | Uint32Array,
    start: number,
    end: number,
  ): number {
    if (start >= end || !isPrintable(codes[start] as number)) return start;
    const { cols } = this.size;
    const { fg, bg } = this.inner._inputHandler._curAttrData;
    let line = lineOf(buffer);
    let { x } = buffer;
    // Half of a wide character is erased.
    if (x > 0 && widthAt(line, x - 1) === 2) setBlank(line, x - 1, fg, bg);
    let at = start;
    for (;;) {
      const stop = Math.min(end, at + cols - x);
      const cells = line._data;
      for (let code = codes[at] as number; at < stop && isPrintable(code);) {
        const cell = x * CELL_NUMBERS;
        cells[cell] = code | NARROW;
        cells[cell + 1] = fg;
        cells[cell + 2] = bg;
        x += 1;
        at += 1;
        code = codes[at] as number;
      }
      if (at < stop || at === end || !isPrintable(codes[at] as number)) break;
      this.wrap(buffer);
      line = lineOf(buffer);
      x = 0;
    }
    buffer.x = x;
    if (x < cols && line._data[x * CELL_NUMBERS] === 0) setBlank(line, x, fg, bg);
    return at;
  }

  private wrap(buffer: ScreenBuffer): void {
    if (buffer.y === buffer.scrollBottom) {
      this.scroll(buffer, true);
      return;
    }
    buffer.y = Math.min(buffer.y + 1, this.size.rows - 1);
    lineOf(buffer).isWrapped = true;
  }

  private feedLine(buffer: ScreenBuffer): void {
    if (buffer.y === buffer.scrollBottom) this.scroll(buffer, false);
    else if (buffer.y + 1 < this.size.rows) {
      buffer.y += 1;
      lineOf(buffer).isWrapped = false;
    }
    // After the last column the cursor moves back to it.
    if (buffer.x >= this.size.cols) buffer.x -= 1;
  }

  /** With a full scrollback the oldest line is recycled; every other case is left to xterm.js. */
  private scroll(buffer: ScreenBuffer, isWrapped: boolean): void {
    const { lines, scrollTop, ybase, scrollBottom } = buffer;
    const erased = this.inner._inputHandler._eraseAttrData();
    if (scrollTop > 0 || !lines.isFull || ybase + scrollBottom !== lines.length - 1) {
      this.inner._bufferService.scroll(erased, isWrapped);
      return;
    }
    const line = lines.recycle();
    if (line.length !== this.size.cols) line._data = new Uint32Array(this.size.cols * CELL_NUMBERS);
    line._data.set(this.blankLine(erased.fg, erased.bg));
    line.length = this.size.cols;
    line.isWrapped = isWrapped;
    if (hasAny(line._combined)) line._combined = {};
    if (hasAny(line._extendedAttrs)) line._extendedAttrs = {};
  }

  private blankLine(fg: number, bg: number): Uint32Array {
    const { blank } = this;
    const length = this.size.cols * CELL_NUMBERS;
    if (blank.length === length && blank[1] === fg && blank[2] === bg) return blank;
    this.blank = new Uint32Array(length);
    for (let at = 0; at < length; at += CELL_NUMBERS) this.blank.set([NARROW, fg, bg], at);
    return this.blank;
  }
}

function isPrintable(code: number): boolean {
  return code >= SPACE && code < DELETE;
}

function hasAny(entries: Readonly<Record<number, unknown>>): boolean {
  for (const _ in entries) return true;
  return false;
}

function lineOf({ lines, ybase, y }: ScreenBuffer): Line {
  return lines.get(ybase + y);
}

function widthAt(line: Line, col: number): number {
  return (line._data[col * CELL_NUMBERS] as number) >> WIDTH_SHIFT;
}

function setBlank(line: Line, col: number, fg: number, bg: number): void {
  line._data.set([NARROW, fg, bg], col * CELL_NUMBERS);
}
