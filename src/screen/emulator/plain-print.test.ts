import * as fc from '../../../test/support/properties.ts';
import { describe, expect, test } from 'vitest';
import { unicodeProvider } from './character-width.ts';
import { decodeCheckpoint, encodeCheckpoint } from './checkpoint.ts';
import { Emulator } from './emulator.ts';
import { guard, Links } from './guard.ts';
import { openXterm } from './xterm.ts';

const SCROLLBACK = 7;

/** All of a terminal's state, made by the emulator's own way of printing alone. */
function byItself(cols: number, rows: number, pieces: readonly Piece[]): unknown {
  const xterm = openXterm(cols, rows, SCROLLBACK);
  xterm.terminal.unicode.register(unicodeProvider);
  xterm.terminal.unicode.activeVersion = unicodeProvider.version;
  const links = new Links();
  guard(xterm.inner, xterm.terminal, links);
  for (const piece of pieces) {
    if (typeof piece === 'string') xterm.inner._inputHandler.parse(piece);
    else xterm.terminal.resize(piece.cols, piece.rows);
  }
  const extra = { title: '', savedTitles: [], links: links.all(), scrollback: SCROLLBACK };
  return stateOf(encodeCheckpoint(xterm, { ...extra, skipped: [] }));
}

function ours(cols: number, rows: number, pieces: readonly Piece[], cut: number): unknown {
  const emulator = new Emulator(cols, rows, SCROLLBACK);
  for (const piece of pieces) {
    if (typeof piece !== 'string') {
      emulator.resize(piece.cols, piece.rows);
      continue;
    }
    const bytes = Buffer.from(piece);
    for (let at = 0; at < bytes.length; at += cut)
      expect(emulator.feed(bytes.subarray(at, at + cut))).toBe(true);
  }
  return stateOf(emulator.checkpoint([]));
}

function stateOf(checkpoint: Uint8Array | undefined): unknown {
  if (checkpoint === undefined) throw new Error('It stands inside of a sequence.');
  decodeCheckpoint(checkpoint);
  return Buffer.from(checkpoint).toString('base64');
}

type Piece = string | { readonly cols: number; readonly rows: number };

const plain = fc
  .array(fc.constantFrom('a', 'word ', '~', 'x'.repeat(9), '\r\n', '\n', '\r', ' '), {
    minLength: 1,
    maxLength: 12,
  })
  .map((words) => words.join(''));
const stretch = fc
  .tuple(plain, fc.integer({ min: 20, max: 120 }))
  .map(([text, times]) => text.repeat(times));
const place = fc
  .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 14 }))
  .map(([row, col]) => `\x1b[${row};${col}H`);
const specials = [
  '\x1b[1;31m',
  '\x1b[44m',
  '\x1b[4m',
  '\x1b[0m',
  '\x1b[2;3r',
  '\x1b[r',
  '\x1b[1;2r',
  '\x1b[4h',
  '\x1b[4l',
  '\x1b[?7l',
  '\x1b[?7h',
  '\x1b[?6h',
  '\x1b[?6l',
  '\x1b(0',
  '\x1b(B',
  '\x1b[?1049h',
  '\x1b[?1049l',
  '\x1b]8;;http://a.example/\x1b\\',
  '\x1b]8;;\x1b\\',
  '\x1b[3b',
  '\x1b[K',
  '\x1b[2J',
  '\x1b[2S',
  '\x1bM',
  '\x1bc',
  '\t',
  '\b',
  '漢',
  '字é',
  'e\u0301',
  '\u0301',
  '🙂',
  '\u00a0ü',
];
const special = fc.constantFrom(...specials);
const size = fc.record({
  cols: fc.integer({ min: 2, max: 14 }),
  rows: fc.integer({ min: 1, max: 8 }),
});
const pieces = fc.array(fc.oneof(plain, stretch, special, special, place, size), { maxLength: 14 });

describe('plain text', () => {
  test('[TM90] printed the short way leaves what the emulator itself would, in every mode and however it is cut', () => {
    fc.assert(
      fc.property(size, pieces, fc.constantFrom(1, 7, 300, 5000), ({ cols, rows }, given, cut) => {
        expect(ours(cols, rows, given, cut)).toEqual(byItself(cols, rows, given));
      }),
      { numRuns: 300 },
    );
  });

  test('[TM90] each mode before and behind a stretch, with a full scrollback', () => {
    const lines = 'one\r\ntwo\r\na longer one\r\n'.repeat(30);
    for (const before of specials)
      for (const cols of [2, 9]) {
        const given = [
          lines,
          '漢e\u0301漢',
          before,
          '\x1b[2;2H',
          lines,
          before,
          'a\u0301',
          lines,
          before,
          '\x1b[2;2H',
          'xy\rz',
        ];
        expect(ours(cols, 3, given, 5000)).toEqual(byItself(cols, 3, given));
      }
  });

  test('[TM90] a stretch inside of a string or of another character set is not taken for text', () => {
    const long = 'q'.repeat(1000);
    for (const piece of [
      `\x1b]9;${long}\x07end`,
      `\x1b(0${long}\x1b(B${long}`,
      `\x1bP${long}\x1b\\.`,
    ])
      for (const cut of [100, 5000])
        expect(ours(20, 5, [piece], cut)).toEqual(byItself(20, 5, [piece]));
  });
});
