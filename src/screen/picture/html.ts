// A screen as one HTML page without scripts, with selectable text. The program's output is escaped; only plain web
// addresses become links.

import { runsOf } from './cell-runs.ts';
import type { Run } from './cell-runs.ts';
import type { PictureOptions } from './pictures.ts';
import type { Row, Snapshot } from '../view/snapshot.ts';
import { escapeXml } from './svg.ts';
import { hexOf, themes } from './theme.ts';
import type { Theme } from './theme.ts';

/** Includes the scrollback, if the snapshot has it. */
export function renderHtml(snapshot: Snapshot, options: PictureOptions = {}): string {
  const theme = themes[options.theme ?? 'dark'] ?? themes['dark']!;
  const { showCursor = true } = options;
  const { cursor } = snapshot;
  const above = snapshot.scrollback.length;
  const lines = [...snapshot.scrollback, ...snapshot.rowsShown].map((row, y) => {
    const isCursorRow = showCursor && cursor.visible && y === above + cursor.row;
    return lineHtml(
      row,
      snapshot,
      theme,
      isCursorRow ? Math.min(cursor.col, snapshot.cols - 1) : -1,
    );
  });
  return [
    '<!doctype html>',
    `<html lang="en"><head><meta charset="utf-8"><title>${escapeXml(snapshot.title || 'Terminal')}</title>`,
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    '<style>',
    `body{margin:0;background:${hexOf(theme.background)};color:${hexOf(theme.foreground)}}`,
    "pre{margin:0;padding:10px;font:15px/1.2 'DejaVu Sans Mono',Menlo,Consolas,monospace}",
    'a{color:inherit}.w{display:inline-block;overflow:hidden;vertical-align:bottom}',
    `.c{background:${hexOf(theme.cursor)};color:${hexOf(theme.background)}}`,
    '</style></head><body><pre>',
    ...lines,
    '</pre></body></html>',
    '',
  ].join('\n');
}

function lineHtml(row: Row, { styles }: Snapshot, theme: Theme, cursorCol: number): string {
  const html = runsOf(row, styles, theme).flatMap((run) => {
    const at = cursorCol - run.col;
    if (at < 0 || at >= run.cols) return [runHtml(run, theme, false)];
    // Only runs of single-width characters have more than one, so columns and characters agree.
    if (run.text.length !== run.cols) return [runHtml(run, theme, true)];
    return [
      runHtml({ ...run, text: run.text.slice(0, at), cols: at }, theme, false),
      runHtml({ ...run, text: run.text.slice(at, at + 1), cols: 1 }, theme, true),
      runHtml({ ...run, text: run.text.slice(at + 1), cols: run.cols - at - 1 }, theme, false),
    ];
  });
  return html.join('').trimEnd();
}

function runHtml(
  { text, cols, style, fg, bg, decoration }: Run,
  theme: Theme,
  isCursor: boolean,
): string {
  if (text === '') return '';
  const css = [
    ...(fg === theme.foreground || isCursor ? [] : [`color:${hexOf(fg)}`]),
    ...(bg === theme.background || isCursor ? [] : [`background:${hexOf(bg)}`]),
    ...(style.bold === true ? ['font-weight:bold'] : []),
    ...(style.italic === true ? ['font-style:italic'] : []),
    ...(decoration === '' ? [] : [`text-decoration:${decoration}`]),
  ];
  const isWide = cols !== text.length;
  if (isWide) css.push(`width:${cols}ch`);
  const classes = [...(isWide ? ['w'] : []), ...(isCursor ? ['c'] : [])];
  const marks =
    (classes.length > 0 ? ` class="${classes.join(' ')}"` : '') +
    (css.length > 0 ? ` style="${css.join(';')}"` : '');
  const inner = escapeXml(text);
  if (style.link !== undefined && /^https?:\/\/[^\s"'<>]+$/i.test(style.link))
    return `<a href="${escapeXml(style.link)}" title="${escapeXml(style.link)}" rel="noopener noreferrer nofollow"${marks}>${inner}</a>`;
  return marks === '' ? inner : `<span${marks}>${inner}</span>`;
}
