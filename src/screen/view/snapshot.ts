// A screen at one moment as plain values: rows of characters with styles, cursor, title, modes. It has no reference to
// the emulator.

import { createHash } from 'node:crypto';
import type { TerminalSize } from '../../protocol/process.ts';

/** `default`, a palette index (0 to 255), or "#rrggbb". */
export type Colour = 'default' | number | `#${string}`;

export type Underline = 'none' | 'single' | 'double' | 'curly' | 'dotted' | 'dashed';

export interface Style {
  readonly fg: Colour;
  readonly bg: Colour;
  readonly bold?: true;
  readonly dim?: true;
  readonly italic?: true;
  readonly underline?: Exclude<Underline, 'none'>;
  readonly underlineColour?: Colour;
  readonly blink?: true;
  readonly inverse?: true;
  readonly invisible?: true;
  readonly strikethrough?: true;
  readonly overline?: true;
  /** The target of a hyperlink: untrusted text of the program. */
  readonly link?: string;
}

export interface Row {
  /** One entry per column: the character with its combining marks, "" after a wide one, " " if empty. */
  readonly chars: readonly string[];
  /** One entry per column: an index into `styles` of the snapshot. */
  readonly styles: readonly number[];
  /** The row continues the one above: the program printed no line end between them. */
  readonly wrapped: boolean;
}

export type MouseTracking = 'none' | 'x10' | 'vt200' | 'drag' | 'any';

export interface Modes {
  readonly applicationCursor: boolean;
  readonly applicationKeypad: boolean;
  readonly bracketedPaste: boolean;
  readonly mouse: MouseTracking;
  /** Mouse reports in the format that reaches beyond column 223 (DECSET 1006). */
  readonly mouseSgr: boolean;
  readonly focusReports: boolean;
  readonly insert: boolean;
  readonly origin: boolean;
  readonly wraparound: boolean;
  readonly reverseWraparound: boolean;
  readonly alternateScreen: boolean;
  readonly synchronizedOutput: boolean;
}

export type CursorShape = 'block' | 'underline' | 'bar';

export interface Cursor {
  /** Both from 0; `col` equals the number of columns while the next character would wrap. */
  readonly row: number;
  readonly col: number;
  readonly visible: boolean;
  readonly shape: CursorShape;
  readonly blink: boolean;
}

/** An event that was skipped because it took the emulator too long. Its bytes are in the journal. */
export interface Skipped {
  readonly seq: number;
  readonly bytes: number;
}

export interface Snapshot extends TerminalSize {
  /** The last event that was processed. */
  readonly seq: number;
  readonly rowsShown: readonly Row[];
  /** Oldest first; empty unless requested. */
  readonly scrollback: readonly Row[];
  /** The number of lines of scrollback, even if not requested. */
  readonly scrollbackLines: number;
  readonly styles: readonly Style[];
  readonly cursor: Cursor;
  /** At most 1 KiB, without control characters. */
  readonly title: string;
  readonly modes: Modes;
  /** See `screenHash`. */
  readonly hash: string;
  readonly skipped: readonly Skipped[];
  /** The normal screen while the alternate one is shown; only if requested. */
  readonly behind?: Pick<Snapshot, 'rowsShown' | 'styles' | 'cursor'>;
}

/** A screen as text only. */
export interface ScreenText extends TerminalSize {
  readonly seq: number;
  readonly cursor: Cursor;
  /** See `screenHash`. */
  readonly hash: string;
  /** One line per row, scrollback first if requested, without trailing spaces. */
  readonly text: string;
}

/** One cell as callers get it. */
export interface Cell extends Partial<Style> {
  readonly char: string;
}

/** A row's characters without trailing spaces. */
export function rowText(row: Row): string {
  return row.chars.join('').replace(/ +$/, '');
}

/** One line of text per row, always `rows` of them. */
export function visibleLines(snapshot: Snapshot): string[] {
  return snapshot.rowsShown.map(rowText);
}

/** agent-tty's definition: SHA-256 of the visible lines without trailing spaces, joined by line feeds. */
export function screenHash(lines: readonly string[]): string {
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

/** The cells of a row, without default values. */
export function rowCells(row: Row, styles: readonly Style[]): Cell[] {
  return row.chars.map((char, col) => {
    const { fg, bg, ...rest } = styles[row.styles[col] ?? 0] ?? { fg: 'default', bg: 'default' };
    return {
      char,
      ...(fg === 'default' ? {} : { fg }),
      ...(bg === 'default' ? {} : { bg }),
      ...rest,
    };
  });
}
