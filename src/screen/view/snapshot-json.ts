// The JSON of a structured snapshot. Cells are written directly: a screen of half a million cells as objects takes five times
// as long, and most of that is garbage that other threads collect.

import { rowCells, type Row, type Snapshot, type Style } from './snapshot.ts';
import { structuredSnapshot } from './snapshot-shape.ts';

const ASCII = 128;
/** Cells of this many styles are kept for the next one that is the same. */
const KEPT_STYLES = 256;

export function structuredJson(
  sessionId: string,
  snapshot: Snapshot,
  { scrollback, cells }: { readonly scrollback: boolean; readonly cells: boolean },
): string {
  const json = JSON.stringify(
    structuredSnapshot(sessionId, snapshot, { scrollback, cells: false }),
  );
  if (!cells) return json;
  return `${json.slice(0, -1)},"cells":${cellsJson(snapshot)}}`;
}

function cellsJson({ rowsShown, styles }: Snapshot): string {
  const rests = styles.map(styleJson);
  const kept: string[] = [];
  const cellJson = (char: string, style: number): string => {
    const code = char.length === 1 ? char.charCodeAt(0) : ASCII;
    const rest = rests[style] ?? '}';
    if (code >= ASCII || style >= KEPT_STYLES) return charJson(char) + rest;
    return (kept[style * ASCII + code] ??= charJson(char) + rest);
  };
  const rows = rowsShown.map(({ chars, styles: numbers }, row) => {
    const cells = chars.map((char, col) => cellJson(char, numbers[col] ?? 0));
    return `{"lineNumber":${row},"cells":[${cells.join(',')}]}`;
  });
  return `[${rows.join(',')}]`;
}

/** The beginning of a cell. */
function charJson(char: string): string {
  return `{"char":${JSON.stringify(char)}`;
}

/** The rest of a cell: what `rowCells` gives for one without a character. */
function styleJson(style: Style): string {
  const row: Row = { chars: [''], styles: [0], wrapped: false };
  const { char: _char, ...rest } = rowCells(row, [style])[0]!;
  const json = JSON.stringify(rest);
  return json === '{}' ? '}' : `,${json.slice(1)}`;
}
