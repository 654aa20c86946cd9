// The emulator of the page: the same as the server's, with the same widths and the same guard against hostile output. It
// answers no query of a program, because the server does: two answers would be typed into it.

import { Terminal, type ITheme } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { unicodeProvider } from '../../screen/emulator/character-width.ts';
import { guard, Links } from '../../screen/emulator/guard.ts';
import type { FunctionId, Inner } from '../../screen/emulator/xterm.ts';
import { darkTheme, hexOf, lightTheme, type Theme } from '../../screen/picture/theme.ts';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

const SCROLLBACK = 2000;
/** Attributes, status and cursor, modes and settings, version, size of the window. */
const QUERIES: readonly FunctionId[] = [
  { final: 'c' },
  { prefix: '>', final: 'c' },
  { prefix: '=', final: 'c' },
  { final: 'n' },
  { prefix: '?', final: 'n' },
  { intermediates: '$', final: 'p' },
  { prefix: '?', intermediates: '$', final: 'p' },
  { prefix: '>', final: 'q' },
  { final: 't' },
  { prefix: '?', final: 'u' },
];
const COLOUR_QUERIES = [4, 10, 11, 12] as const;
const CLIPBOARD = 52;

allowStyles();

export function openTerminal({ cols, rows }: TerminalSize, isDark: boolean): Terminal {
  const terminal = new Terminal({
    cols,
    rows,
    scrollback: SCROLLBACK,
    allowProposedApi: true,
    logLevel: 'off',
    disableStdin: true,
    cursorInactiveStyle: 'outline',
    fontFamily: "'DejaVu Sans Mono', ui-monospace, Menlo, Consolas, monospace",
    fontSize: 13,
    theme: themeOf(isDark),
    // Addresses come from the program: nothing opens by a plain click.
    linkHandler: { activate: () => undefined, allowNonHttpProtocols: false },
  });
  terminal.unicode.register(unicodeProvider);
  terminal.unicode.activeVersion = unicodeProvider.version;
  const inner = (terminal as unknown as { readonly _core: Inner })._core;
  guard(inner, terminal, new Links());
  swallowQueries(terminal);
  return terminal;
}

function swallowQueries({ parser }: Terminal): void {
  for (const id of QUERIES) parser.registerCsiHandler(id, () => true);
  parser.registerDcsHandler({ intermediates: '$', final: 'q' }, () => true);
  for (const code of COLOUR_QUERIES) parser.registerOscHandler(code, (data) => data.includes('?'));
  parser.registerOscHandler(CLIPBOARD, () => true);
}

const [ESC, LETTER_C] = [0x1b, 0x63];

/** A reset (ESC c) takes as long as drawing a screen; repeating it at once changes nothing. */
export function withoutRepeatedResets(bytes: Uint8Array): Uint8Array {
  const isReset = (at: number): boolean => bytes[at] === ESC && bytes[at + 1] === LETTER_C;
  const kept = new Uint8Array(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    if (isReset(at) && isReset(at + 2)) at += 1;
    else {
      kept[length] = bytes[at] ?? 0;
      length += 1;
    }
  }
  return kept.subarray(0, length);
}

export function themeOf(isDark: boolean): ITheme {
  const theme: Theme = isDark ? darkTheme : lightTheme;
  const colours = theme.palette.map(hexOf);
  const [black, red, green, yellow, blue, magenta, cyan, white] = colours;
  const [brightBlack, brightRed, brightGreen, brightYellow] = colours.slice(8);
  const [brightBlue, brightMagenta, brightCyan, brightWhite] = colours.slice(12);
  return {
    foreground: hexOf(theme.foreground),
    background: hexOf(theme.background),
    cursor: hexOf(theme.cursor),
    ...defined({ black, red, green, yellow, blue, magenta, cyan, white }),
    ...defined({ brightBlack, brightRed, brightGreen, brightYellow }),
    ...defined({ brightBlue, brightMagenta, brightCyan, brightWhite }),
    extendedAnsi: colours.slice(16),
  };
}

function defined(colours: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const entries = Object.entries(colours).filter(([, colour]) => colour !== undefined);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** xterm.js makes style elements. The policy of the page lets only those count that carry its nonce. */
function allowStyles(): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[property=csp-nonce]')?.nonce ?? '';
  const create = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  };
}
