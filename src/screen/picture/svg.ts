// A screen as SVG: text stays text, in any monospaced font of the viewer, with each run of cells fitted to its columns.

import { runsOf } from './cell-runs.ts';
import type { PictureOptions } from './pictures.ts';
import type { Snapshot } from '../view/snapshot.ts';
import { hexOf, themes } from './theme.ts';

const CELL = { width: 9, height: 17, baseline: 14, fontSize: 15 } as const;
const FONTS = "'DejaVu Sans Mono', Menlo, Consolas, monospace";

export function renderSvg(snapshot: Snapshot, options: PictureOptions = {}): string {
  const theme = themes[options.theme ?? 'dark'] ?? themes['dark']!;
  const { padding = 10, scale = 1, showCursor = true } = options;
  const width = snapshot.cols * CELL.width + 2 * padding;
  const height = snapshot.rows * CELL.height + 2 * padding;
  const body: string[] = [];
  snapshot.rowsShown.forEach((row, y) => {
    const top = padding + y * CELL.height;
    for (const run of runsOf(row, snapshot.styles, theme)) {
      const left = padding + run.col * CELL.width;
      const span = run.cols * CELL.width;
      if (run.bg !== theme.background)
        body.push(
          `<rect x="${left}" y="${top}" width="${span}" height="${CELL.height}" fill="${hexOf(run.bg)}"/>`,
        );
      if (run.text.trim() === '' && run.decoration === '') continue;
      const style = [
        run.style.bold === true ? ' font-weight="bold"' : '',
        run.style.italic === true ? ' font-style="italic"' : '',
        run.decoration === '' ? '' : ` style="text-decoration:${run.decoration}"`,
      ].join('');
      body.push(
        `<text x="${left}" y="${top + CELL.baseline}" textLength="${span}" lengthAdjust="spacingAndGlyphs" fill="${hexOf(run.fg)}"${style}>${escapeXml(run.text)}</text>`,
      );
    }
  });
  const { cursor } = snapshot;
  if (showCursor && cursor.visible) {
    const left = padding + Math.min(cursor.col, snapshot.cols - 1) * CELL.width;
    const top = padding + cursor.row * CELL.height;
    const [w, h] =
      cursor.shape === 'bar'
        ? [2, CELL.height]
        : [CELL.width, cursor.shape === 'underline' ? 2 : CELL.height];
    body.push(
      `<rect x="${left}" y="${top + CELL.height - h}" width="${w}" height="${h}" fill="${hexOf(theme.cursor)}" fill-opacity="${cursor.shape === 'block' ? 0.6 : 1}"/>`,
    );
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width * scale}" height="${height * scale}" viewBox="0 0 ${width} ${height}" font-family="${FONTS}" font-size="${CELL.fontSize}">`,
    `<rect width="100%" height="100%" fill="${hexOf(theme.background)}"/>`,
    '<g xml:space="preserve">',
    ...body,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Line ends, and the joiner of emoji. */
const ALLOWED = new Set(['\t', '\n', '\u200d']);

/** Escapes markup in the program's output. XML allows no control characters at all. */
export function escapeXml(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(/\p{C}/gu, (character) => (ALLOWED.has(character) ? character : '\ufffd'));
}
