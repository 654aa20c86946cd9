// A screen at one moment in the form that crosses threads: flat arrays that are transferred without a copy. The main
// thread makes rows and text of it only if it is small; for a large one the picture worker does.

import type { Look } from '../emulator/emulator.ts';
import { gridRows } from '../emulator/grid.ts';
import { rowText, screenHash } from './snapshot.ts';
import type { ScreenText, Skipped, Snapshot } from './snapshot.ts';

export interface View {
  /** The last event that was processed. */
  readonly seq: number;
  readonly skipped: readonly Skipped[];
  readonly look: Look;
}

/** About a millisecond of work; a screen of 200 by 80. */
export const SMALL_CELLS = 16_384;
const SMALL_EXTRAS_BYTES = 64 * 1024;

export function isSmall({ look }: View): boolean {
  const { cols, wrapped, extras } = look;
  return cols * wrapped.length <= SMALL_CELLS && extras.length <= SMALL_EXTRAS_BYTES;
}

export function buffersOf({ behind, ...shown }: Look): ArrayBuffer[] {
  return [shown, ...(behind ? [behind] : [])].flatMap(({ data, wrapped, extras }) =>
    [data, wrapped, extras].map(({ buffer }) => buffer),
  );
}

/** All rows as values. In a server's main thread only for a small view. */
export function snapshotOf({ look, seq, skipped }: View): Snapshot {
  return toSnapshot(look, seq, skipped);
}

export function toSnapshot(look: Look, seq: number, skipped: readonly Skipped[]): Snapshot {
  const { rows, styles } = gridRows(look);
  const { cols, cursor, title, modes, scrollbackLines, behind } = look;
  const normal = behind && gridRows(behind);
  const above = rows.length - look.rows;
  const rowsShown = rows.slice(above);
  return {
    seq,
    cols,
    rows: look.rows,
    rowsShown,
    scrollback: rows.slice(0, above),
    scrollbackLines,
    styles,
    cursor,
    title,
    modes,
    hash: screenHash(rowsShown.map(rowText)),
    skipped,
    ...(behind &&
      normal && {
        behind: { rowsShown: normal.rows, styles: normal.styles, cursor: behind.cursor },
      }),
  };
}

export function textOf(view: View): ScreenText {
  const { scrollback, rowsShown, seq, cols, rows, cursor, hash } = snapshotOf(view);
  const text = [...scrollback, ...rowsShown].map(rowText).join('\n');
  return { seq, cols, rows, cursor, hash, text };
}
