// Encodes input as the bytes that a terminal sends: keys by the names of tmux and agent-tty, with modifiers; pastes;
// the mouse. The encoding depends on the modes that the program has set, which come from the screen.

import { HoldfastError } from '../../protocol/errors.ts';
import type { Modes } from './snapshot.ts';

export type KeyModes = Pick<Modes, 'applicationCursor' | 'bracketedPaste' | 'mouse' | 'mouseSgr'>;

const ESC = '\x1b';
const SHIFT = 1;
const ALT = 2;
const CTRL = 4;

/** CSI letter or, in application-cursor mode, SS3 letter; with modifiers CSI 1 ; m letter. */
const CURSOR_KEYS: Readonly<Record<string, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  home: 'H',
  end: 'F',
};
/** SS3 letter; with modifiers CSI 1 ; m letter. */
const FIRST_FUNCTION_KEYS: Readonly<Record<string, string>> = {
  f1: 'P',
  f2: 'Q',
  f3: 'R',
  f4: 'S',
};
/** CSI number ~; with modifiers CSI number ; m ~. */
const NUMBERED_KEYS: Readonly<Record<string, number>> = {
  insert: 2,
  delete: 3,
  pageup: 5,
  pagedown: 6,
  f5: 15,
  f6: 17,
  f7: 18,
  f8: 19,
  f9: 20,
  f10: 21,
  f11: 23,
  f12: 24,
};
const SIMPLE_KEYS: Readonly<Record<string, string>> = {
  enter: '\r',
  tab: '\t',
  escape: ESC,
  backspace: '\x7f',
  space: ' ',
};
/** tmux's names, and other common ones. */
const ALIASES: Readonly<Record<string, string>> = {
  return: 'enter',
  cr: 'enter',
  esc: 'escape',
  bspace: 'backspace',
  bs: 'backspace',
  ic: 'insert',
  dc: 'delete',
  del: 'delete',
  ppage: 'pageup',
  pgup: 'pageup',
  npage: 'pagedown',
  pgdn: 'pagedown',
  btab: 'shift+tab',
  backtab: 'shift+tab',
  plus: '+',
  minus: '-',
};
const MODIFIERS: Readonly<Record<string, number>> = {
  ctrl: CTRL,
  control: CTRL,
  c: CTRL,
  alt: ALT,
  meta: ALT,
  m: ALT,
  option: ALT,
  shift: SHIFT,
  s: SHIFT,
};

interface Key {
  readonly name: string;
  readonly modifiers: number;
}

/** Each name is one key: "Enter", "Up", "F5", "C-c", "M-x", "S-Left", "ctrl+alt+Delete", "^C", "ä". */
export function encodeKeys(names: readonly string[], modes: KeyModes): Buffer {
  return Buffer.from(names.map((name) => encodeKey(parseKey(name), modes, name)).join(''));
}

/** Throws `invalid_input` unless every name is a key. To be called before anything is sent. */
export function checkKeys(names: readonly string[]): void {
  const modes: KeyModes = {
    applicationCursor: false,
    bracketedPaste: false,
    mouse: 'none',
    mouseSgr: false,
  };
  encodeKeys(names, modes);
}

function parseKey(given: string): Key {
  let rest = given;
  let modifiers = 0;
  if (/^\^.$/u.test(rest)) return { name: rest.slice(1).toLowerCase(), modifiers: CTRL };
  for (;;) {
    // "C-" and "ctrl+"; a single "-" or "+", or one at the end, is the key itself.
    const found = /^([a-z]+)([+-])(?=.)/iu.exec(rest);
    const modifier = found === null ? undefined : MODIFIERS[(found[1] ?? '').toLowerCase()];
    if (found === null || modifier === undefined) break;
    // Single letters are tmux's notation and take only "-".
    if (found[1]?.length === 1 && found[2] === '+') break;
    modifiers |= modifier;
    rest = rest.slice(found[0].length);
  }
  const alias = ALIASES[rest.toLowerCase()];
  if (alias === 'shift+tab') return { name: 'tab', modifiers: modifiers | SHIFT };
  return { name: alias ?? (isCharacter(rest) ? rest : rest.toLowerCase()), modifiers };
}

function encodeKey({ name, modifiers }: Key, modes: KeyModes, given: string): string {
  const code = modifiers + 1;
  const cursor = CURSOR_KEYS[name];
  if (cursor !== undefined) {
    if (modifiers > 0) return `${ESC}[1;${code}${cursor}`;
    return `${ESC}${modes.applicationCursor ? 'O' : '['}${cursor}`;
  }
  const first = FIRST_FUNCTION_KEYS[name];
  if (first !== undefined) return modifiers > 0 ? `${ESC}[1;${code}${first}` : `${ESC}O${first}`;
  const number = NUMBERED_KEYS[name];
  if (number !== undefined) return `${ESC}[${number}${modifiers > 0 ? `;${code}` : ''}~`;
  if (name === 'tab' && (modifiers & SHIFT) !== 0) return withAlt(`${ESC}[Z`, modifiers);
  const simple = SIMPLE_KEYS[name] ?? (isCharacter(name) ? name : undefined);
  if (simple === undefined) throw unknownKey(given);
  return withAlt(
    (modifiers & CTRL) === 0 ? shifted(simple, modifiers) : control(simple, given),
    modifiers,
  );
}

function isCharacter(text: string): boolean {
  return text !== '' && text.length === String.fromCodePoint(text.codePointAt(0) ?? 0).length;
}

function withAlt(bytes: string, modifiers: number): string {
  return (modifiers & ALT) === 0 ? bytes : ESC + bytes;
}

function shifted(character: string, modifiers: number): string {
  return (modifiers & SHIFT) === 0 ? character : character.toUpperCase();
}

/** The characters from @ to _ lose their upper bits; a few others have conventional codes. */
function control(character: string, given: string): string {
  if (character === ' ' || character === '2') return '\x00';
  if (character === '?' || character === '8') return '\x7f';
  if (character === '/') return '\x1f';
  if ('\r\t\x1b\x7f'.includes(character)) return character === '\x7f' ? '\x08' : character;
  const code = character.toUpperCase().codePointAt(0) ?? 0;
  if (code < 0x40 || code > 0x5f) throw unknownKey(given);
  return String.fromCodePoint(code & 0x1f);
}

function unknownKey(given: string): HoldfastError {
  return new HoldfastError('invalid_input', `There is no key called "${given.slice(0, 100)}".`, {
    field: 'keys',
    key: given.slice(0, 100),
  });
}

const PASTE_END = `${ESC}[201~`;

/**
 * A paste: bracketed if the program asked for it, with line ends as Enter sends them. Sequences that would end the
 * brackets are removed, so that no part of the text counts as typed.
 */
export function encodePaste(text: string, modes: KeyModes): Buffer {
  const pasted = text.replaceAll('\r\n', '\r').replaceAll('\n', '\r');
  if (!modes.bracketedPaste) return Buffer.from(pasted);
  let safe = pasted;
  // Removing one may create another.
  while (safe.includes(PASTE_END) || safe.includes('\u009b201~'))
    safe = safe.replaceAll(PASTE_END, '').replaceAll('\u009b201~', '');
  return Buffer.from(`${ESC}[200~${safe}${PASTE_END}`);
}
