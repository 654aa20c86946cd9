// Output as a terminal would show it: rows after carriage returns, backspaces and the cursor movements of progress bars
// were applied, without colours. Each row knows its bytes of the output; the rows cover all bytes.

import { sequenceEnd } from '../../base/bytes/ansi.ts';
import { decodeUtf8 } from '../../base/bytes/utf8.ts';

export interface Row {
  readonly text: string;
  /** Bytes of the output, counted from its beginning. */
  readonly start: number;
  readonly end: number;
  /** The text equals the bytes (without the line break). */
  readonly plain: boolean;
  /** Contains bytes that are not text. */
  readonly bad: boolean;
  /** Stands for bytes that are not shown, because they are binary. */
  readonly binary: boolean;
}

interface Line {
  cells: string[] | undefined;
  text: string;
  start: number;
  plain: boolean;
  bad: boolean;
  binary: boolean;
}

const LF = 0x0a;
/** Characters that need more than being appended. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
// oxlint-disable-next-line no-control-regex
const NO_TEXT = /[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffd]/g;
/** The least number and share of non-text characters that make a line binary. */
const BINARY_CHARACTERS = 4;
const BINARY_SHARE = 0.2;
/** The largest terminal: a cursor never moves further, by mistake or malice. */
const MAX_POSITION = 2000;

/** The rows of a contiguous part of the output that begins at `offset`. */
export function textRows(bytes: Buffer, offset: number): Row[] {
  const sheet = new Sheet(offset);
  for (let at = 0; at <= bytes.length;) {
    const found = bytes.indexOf(LF, at);
    const end = found < 0 ? bytes.length : found;
    sheet.line(bytes.subarray(at, end), offset + at);
    if (found < 0) break;
    sheet.breakLine(offset + end + 1);
    at = end + 1;
  }
  return sheet.rows(offset + bytes.length, bytes.at(-1) === LF);
}

class Sheet {
  private readonly lines: Line[];
  private row = 0;
  private column = 0;

  constructor(offset: number) {
    this.lines = [freshLine(offset)];
  }

  line(bytes: Buffer, start: number): void {
    const line = this.current();
    const text = decodeUtf8(bytes);
    const bad = text.match(NO_TEXT)?.length ?? 0;
    if (bad > 0) line.bad = true;
    if (bad >= BINARY_CHARACTERS && bad / text.length > BINARY_SHARE) {
      Object.assign(line, { binary: true, plain: false, text: '', cells: undefined });
      return;
    }
    const untouched = line.text === '' && line.cells === undefined && this.column === 0;
    const ended = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (untouched && !CONTROL.test(ended)) {
      line.text = ended;
      line.plain = bad === 0 && ended.length === text.length;
      return;
    }
    this.apply(text, start);
  }

  breakLine(start: number): void {
    this.column = 0;
    this.row += 1;
    if (this.row === this.lines.length) this.lines.push(freshLine(start));
  }

  /** `broken`: the output ends with a line break, after which there is an empty line. */
  rows(end: number, broken: boolean): Row[] {
    const { lines } = this;
    const last = lines.at(-1);
    if (broken && lines.length > 1 && last && !last.binary && shown(last) === '') lines.pop();
    return lines.map((line, index) => ({
      text: shown(line),
      start: line.start,
      end: lines[index + 1]?.start ?? end,
      plain: line.plain,
      bad: line.bad,
      binary: line.binary,
    }));
  }

  private current(): Line {
    const line = this.lines[this.row];
    if (!line) throw new Error('the cursor has left the sheet');
    return line;
  }

  private apply(text: string, start: number): void {
    for (let at = 0; at < text.length;) {
      const code = text.codePointAt(at) ?? 0;
      if (code === 0x1b) {
        const end = sequenceEnd(text, at, true);
        this.sequence(text.slice(at, end), start);
        at = end;
        continue;
      }
      const char = String.fromCodePoint(code);
      if (char === '\r') this.column = 0;
      else if (char === '\b') this.column = Math.max(0, this.column - 1);
      else if (char === '\t' || code > 0x9f || (code >= 0x20 && code < 0x7f)) this.put(char);
      else if (code !== 0x07 && code !== 0x0b && code !== 0x0c) this.put(visible(code));
      at += char.length;
    }
    this.current().plain = false;
  }

  private put(char: string): void {
    const cells = cellsOf(this.current());
    while (cells.length < this.column) cells.push(' ');
    cells[this.column] = char;
    this.column += 1;
  }

  /** Applies cursor movements and erasing; ignores everything else. */
  private sequence(sequence: string, start: number): void {
    // oxlint-disable-next-line no-control-regex
    const match = /^\x1b\[([\d;]*)([A-HJKf])$/.exec(sequence);
    if (!match) return;
    const [first = '', second = ''] = (match[1] ?? '').split(';');
    const count = Math.min(Math.max(1, Number(first)), MAX_POSITION);
    const [, , final = ''] = match;
    switch (final) {
      case 'A':
      case 'F':
        return this.up(count, final === 'F');
      case 'B':
      case 'E':
        return this.up(-count, final === 'E');
      case 'C':
        this.column = Math.min(this.column + count, MAX_POSITION);
        return;
      case 'D':
        this.column = Math.max(0, this.column - count);
        return;
      case 'G':
        this.column = count - 1;
        return;
      case 'K':
        return this.erase(first);
      case 'J':
        return this.eraseBelow(first);
      default:
        return this.moveTo(Math.min(Math.max(1, Number(second)), MAX_POSITION), start);
    }
  }

  private up(rows: number, toStart: boolean): void {
    this.row = Math.min(Math.max(0, this.row - rows), this.lines.length - 1);
    if (toStart) this.column = 0;
  }

  private erase(mode: string): void {
    const line = this.current();
    const cells = cellsOf(line);
    if (mode === '' || mode === '0') cells.length = Math.min(cells.length, this.column);
    else if (mode === '2') cells.length = 0;
    else for (let at = 0; at <= this.column && at < cells.length; at += 1) cells[at] = ' ';
  }

  /** A cleared screen is a new one: the old content stays readable. */
  private eraseBelow(mode: string): void {
    if (mode !== '' && mode !== '0') return;
    this.erase('');
    for (const line of this.lines.slice(this.row + 1)) {
      line.text = '';
      line.cells = undefined;
    }
  }

  /** There is no screen with numbered lines: an absolute position means the next line. */
  private moveTo(column: number, start: number): void {
    this.row = this.lines.length - 1;
    if (shown(this.current()) !== '') {
      this.lines.push(freshLine(start));
      this.row += 1;
    }
    this.column = column - 1;
  }
}

function freshLine(start: number): Line {
  return { cells: undefined, text: '', start, plain: true, bad: false, binary: false };
}

function cellsOf(line: Line): string[] {
  line.cells ??= Array.from(line.text);
  line.plain = false;
  return line.cells;
}

function shown({ cells, text }: Line): string {
  return cells ? cells.join('').trimEnd() : text;
}

function visible(code: number): string {
  return `\\x${code.toString(16).padStart(2, '0')}`;
}
