// A screen as the bytes that make another, empty terminal of its size show the same: for a recording that begins in the
// middle, or a client that attaches. Includes the screen behind a full-screen program, if the snapshot has it.

import type { Colour, Modes, Row, Snapshot, Style } from './snapshot.ts';

const UNDERLINES = { single: 1, double: 2, curly: 3, dotted: 4, dashed: 5 } as const;
const PLAIN: Style = { fg: 'default', bg: 'default' };

/** DECSET numbers by mouse mode. */
const MOUSE = { none: [], x10: [9], vt200: [1000], drag: [1002], any: [1003] } as const;

export function repaint(snapshot: Snapshot): string {
  const { cols, cursor, modes, behind } = snapshot;
  return [
    behind ? screenBytes(behind, cols) : '',
    modes.alternateScreen ? '\x1b[?1049h' : '',
    screenBytes(snapshot, cols),
    modes.applicationKeypad ? '\x1b=' : '',
    ...modeNumbers(modes).map((number) => `\x1b[?${number}h`),
    cursor.visible ? '' : '\x1b[?25l',
  ].join('');
}

function modeNumbers(modes: Modes): number[] {
  return [
    ...(modes.applicationCursor ? [1] : []),
    ...(modes.bracketedPaste ? [2004] : []),
    ...MOUSE[modes.mouse],
    ...(modes.mouseSgr ? [1006] : []),
    ...(modes.focusReports ? [1004] : []),
  ];
}

/** The rows, and the cursor in its position. */
function screenBytes(
  { rowsShown, styles, cursor }: Pick<Snapshot, 'rowsShown' | 'styles' | 'cursor'>,
  cols: number,
): string {
  const rows = rowsShown.map((row, y) => {
    const text = rowBytes(row, styles);
    return text === '' ? '' : `\x1b[${y + 1};1H${text}`;
  });
  const place = `\x1b[${cursor.row + 1};${Math.min(cursor.col, cols - 1) + 1}H`;
  return `\x1b[0m\x1b[H\x1b[2J${rows.join('')}\x1b[0m${place}`;
}

function rowBytes(row: Row, styles: readonly Style[]): string {
  let end = row.chars.length;
  while (end > 0 && row.chars[end - 1] === ' ' && row.styles[end - 1] === 0) end -= 1;
  let bytes = '';
  let last = 0;
  for (let col = 0; col < end; col += 1) {
    const number = row.styles[col] ?? 0;
    if (number !== last) bytes += styleBytes(styles[last] ?? PLAIN, styles[number] ?? PLAIN);
    last = number;
    bytes += row.chars[col] ?? '';
  }
  return last === 0 ? bytes : `${bytes}${styleBytes(styles[last] ?? PLAIN, PLAIN)}`;
}

function styleBytes(before: Style, style: Style): string {
  const codes = [
    '0',
    ...(style.bold === true ? ['1'] : []),
    ...(style.dim === true ? ['2'] : []),
    ...(style.italic === true ? ['3'] : []),
    ...(style.underline === undefined ? [] : [`4:${UNDERLINES[style.underline]}`]),
    ...(style.blink === true ? ['5'] : []),
    ...(style.inverse === true ? ['7'] : []),
    ...(style.invisible === true ? ['8'] : []),
    ...(style.strikethrough === true ? ['9'] : []),
    ...(style.overline === true ? ['53'] : []),
    ...colourCodes(style.fg, 38),
    ...colourCodes(style.bg, 48),
    ...colourCodes(style.underlineColour ?? 'default', 58),
  ];
  const link = before.link === style.link ? '' : `\x1b]8;;${style.link ?? ''}\x1b\\`;
  return `${link}\x1b[${codes.join(';')}m`;
}

function colourCodes(colour: Colour, code: number): string[] {
  if (colour === 'default') return [];
  if (typeof colour === 'number') return [`${code}:5:${colour}`];
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return [`${code}:2::${red}:${green}:${blue}`];
}
