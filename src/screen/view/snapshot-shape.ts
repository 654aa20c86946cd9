// A snapshot as callers get it: agent-tty's fields, and further ones.

import type { ScreenFacts, TextSnapshot } from '../../protocol/text-snapshot.ts';
import {
  rowCells,
  rowText,
  type Cell,
  type Row,
  type ScreenText,
  type Snapshot,
} from './snapshot.ts';

export interface SnapshotShape extends ScreenFacts {
  readonly format: 'structured';
  readonly isAltScreen: boolean;
  readonly visibleLines: readonly { readonly row: number; readonly text: string }[];
  readonly scrollbackLines?: readonly { readonly row: number; readonly text: string }[];
  readonly cells?: readonly { readonly lineNumber: number; readonly cells: readonly Cell[] }[];
  readonly title: string;
  readonly cursor: Snapshot['cursor'];
  readonly modes: Snapshot['modes'];
  readonly scrollbackCount: number;
}

export function structuredSnapshot(
  sessionId: string,
  snapshot: Snapshot,
  include: { readonly scrollback: boolean; readonly cells: boolean },
): SnapshotShape {
  const { seq, cols, rows, cursor, modes, title, hash } = snapshot;
  return {
    format: 'structured',
    sessionId,
    capturedAtSeq: seq,
    cols,
    rows,
    cursorRow: cursor.row,
    cursorCol: cursor.col,
    isAltScreen: modes.alternateScreen,
    visibleLines: numbered(snapshot.rowsShown),
    ...(include.scrollback && { scrollbackLines: numbered(snapshot.scrollback) }),
    ...(include.cells && {
      cells: snapshot.rowsShown.map((row, lineNumber) => ({
        lineNumber,
        cells: rowCells(row, snapshot.styles),
      })),
    }),
    screenHash: hash,
    title,
    cursor,
    modes,
    scrollbackCount: snapshot.scrollbackLines,
  };
}

export function textSnapshot(sessionId: string, shown: ScreenText): TextSnapshot {
  const { seq, cols, rows, cursor, hash, text } = shown;
  return {
    format: 'text',
    sessionId,
    capturedAtSeq: seq,
    cols,
    rows,
    cursorRow: cursor.row,
    cursorCol: cursor.col,
    text,
    screenHash: hash,
  };
}

function numbered(rows: readonly Row[]): { row: number; text: string }[] {
  return rows.map((each, row) => ({ row, text: rowText(each) }));
}
