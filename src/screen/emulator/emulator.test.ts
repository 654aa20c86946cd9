// The emulated terminal: that it does not matter how its bytes are cut, that a checkpoint holds everything, and that a few
// bytes cannot cost much.
import { inflateSync } from 'node:zlib';
import * as fc from '../../../test/support/properties.ts';
import { describe, expect, test } from 'vitest';
import { VERSION } from '../../base/version.ts';
import { characterWidth } from './character-width.ts';
import { Emulator } from './emulator.ts';
import { openXterm, verifyInternals, type Inner, type Xterm } from './xterm.ts';
import { toSnapshot } from '../view/view.ts';
import { visibleLines } from '../view/snapshot.ts';
import type { Snapshot } from '../view/snapshot.ts';

const SIZE = { cols: 20, rows: 6 } as const;

function emulator(...printed: readonly string[]): Emulator {
  const made = new Emulator(SIZE.cols, SIZE.rows, 50);
  for (const text of printed) made.feed(Buffer.from(text));
  return made;
}

function shown(of: Emulator, scrollback = 1000): Snapshot {
  return toSnapshot(of.look(scrollback), 1, []);
}

/** The text of a checkpoint, and its cells. */
function stateOf(of: Emulator): unknown {
  const raw = inflateSync(of.checkpoint([]) ?? new Uint8Array());
  const head = raw.readUInt32LE(0);
  return [JSON.parse(raw.toString('utf8', 4, 4 + head)), raw.subarray(4 + head).toString('hex')];
}

/** Everything a program can do to a screen, in whole sequences. */
const piece = fc.oneof(
  fc.string({ maxLength: 30 }).map((text) => text.replaceAll('\x1b', '')),
  fc.constantFrom(
    '漢字',
    '한',
    '👍🏽',
    'e\u0301\u0302',
    '\r\n',
    '\n',
    '\r',
    '\t',
    '\b',
    '\x0e',
    '\x0f',
    '\x1b(0',
    '\x1b(B',
    '\x1b)0',
    '\x1b7',
    '\x1b8',
    '\x1bD',
    '\x1bM',
    '\x1bE',
    '\x1bH',
    '\x1b[3g',
    '\x1b[2J',
    '\x1b[J',
    '\x1b[1J',
    '\x1b[K',
    '\x1b[1K',
    '\x1b[3J',
    '\x1b[?1049h',
    '\x1b[?1049l',
    '\x1b[?7l',
    '\x1b[?7h',
    '\x1b[?6h',
    '\x1b[?6l',
    '\x1b[?25l',
    '\x1b[?1h',
    '\x1b[?2004h',
    '\x1b[?1000h\x1b[?1006h',
    '\x1b[4h',
    '\x1b[4l',
    '\x1b[5 q',
    '\x1b#8',
    '\x1bc',
    '\x1b[!p',
    '\x1b]0;title\x07',
    '\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\',
    '\x1b[22t\x1b]2;other\x07\x1b[23t',
    '\x1b[1;31m',
    '\x1b[38;5;200;48;2;1;2;3m',
    '\x1b[4:3;58;5;9m',
    '\x1b[0m',
    '\x1b[2;3;7;9;53m',
    'abcdefghijklmnopqrstuvwxyz',
    '\x1b[1"q',
    '\x1b[?45h',
  ),
  fc
    .tuple(fc.constantFrom(...'ABCDEFGHIJKLMPSTXZ@`abdef'.split('')), fc.nat(30), fc.nat(30))
    .map(([final, first, second]) => `\x1b[${first};${second}${final}`),
  fc.tuple(fc.nat(8), fc.nat(8)).map(([top, bottom]) => `\x1b[${top};${bottom}r`),
);
const program = fc.array(piece, { maxLength: 25 });

describe('an emulated terminal', () => {
  test('[SC1] shows the same wherever its bytes are cut', () => {
    fc.assert(
      fc.property(program, (pieces) => {
        const bytes = Buffer.from(pieces.join(''));
        const whole = emulator(bytes.toString());
        const bytewise = emulator();
        for (const byte of bytes) expect(bytewise.feed(Uint8Array.of(byte))).toBe(true);
        expect(shown(bytewise)).toEqual(shown(whole));
      }),
      {
        numRuns: 150,
        // Found by chance once: a wide character that does not fit, without autowrap, and one more behind it.
        examples: [
          [['\x1b[?7l', ' '.repeat(18), '漢字', ' ']],
          [['\x1b[?7l\x1b[4h', ' '.repeat(18), '漢字', ' ']],
        ],
      },
    );
  });

  test('[SC1] bytes that are no text become the replacement character, one cut or another', () => {
    const bytes = Buffer.from([0x61, 0xff, 0xe6, 0xbc, 0x62, 0xc3, 0x28, 0xf0, 0x9f, 0x98, 0x63]);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const cutOnce = emulator();
      cutOnce.feed(bytes.subarray(0, cut));
      cutOnce.feed(bytes.subarray(cut));
      expect(visibleLines(shown(cutOnce))[0]).toBe('a\ufffd\ufffdb\ufffd(\ufffdc');
    }
  });

  test('[SC2] goes on from a checkpoint exactly as it would have gone on itself', () => {
    fc.assert(
      fc.property(
        program,
        program,
        fc.tuple(fc.integer({ min: 2, max: 30 }), fc.integer({ min: 1, max: 10 })),
        (before, after, [cols, rows]) => {
          const first = emulator(...before);
          const kept = first.checkpoint([{ seq: 3, bytes: 4 }]);
          if (kept === undefined) throw new Error('It stands between two sequences.');
          const { emulator: second, skipped } = Emulator.restore(kept);
          expect(skipped).toEqual([{ seq: 3, bytes: 4 }]);
          for (const each of [first, second]) {
            for (const text of after.slice(0, 10)) each.feed(Buffer.from(text));
            each.resize(cols, rows);
            for (const text of after.slice(10)) each.feed(Buffer.from(text));
          }
          expect(shown(second)).toEqual(shown(first));
          // Not only what shows: the whole of what is kept is the same.
          expect(stateOf(second)).toEqual(stateOf(first));
        },
      ),
      { numRuns: 200 },
    );
  });

  test('[SC2] keeps no checkpoint inside of a sequence or of a character', () => {
    expect(emulator('a\x1b[3').checkpoint([])).toBeUndefined();
    const half = emulator('a');
    half.feed(Uint8Array.of(0xe6));
    expect(half.checkpoint([])).toBeUndefined();
    half.feed(Uint8Array.of(0xbc, 0xa2));
    expect(half.checkpoint([])).toBeDefined();
  });

  test('[SC2] a checkpoint that was cut or changed is refused', () => {
    const kept = emulator('hello').checkpoint([]) ?? new Uint8Array();
    for (let length = 0; length < kept.length; length += 1)
      expect(() => Emulator.restore(kept.subarray(0, length))).toThrow(Error);
    const changed = Uint8Array.from(kept);
    changed[changed.length >> 1] = (changed[changed.length >> 1] ?? 0) ^ 1;
    expect(() => Emulator.restore(changed)).toThrow(Error);
  });

  test('[SC63] with an unknown xterm.js it shows the same, without checkpoints and fast paths', () => {
    const kept = emulator('before').checkpoint([]) ?? new Uint8Array();
    const plain = new Emulator(SIZE.cols, SIZE.rows, 50, { verified: false });
    const lines = Array.from({ length: 40 }, (_, n) => `\x1b[3${n % 8}mline ${n}\x1b[0m 漢e\u0301`);
    const text = `${lines.join('\r\n')}\r\n${'x'.repeat(900)}\x1b[?25l\x1b[2;3Hend`;
    plain.feed(Buffer.from(text));
    expect(shown(plain)).toEqual(shown(emulator(text)));
    expect(plain.checkpoint([])).toBeUndefined();
    expect(() => Emulator.restore(kept, { verified: false })).toThrow(/xterm/);
  });

  test('[SC63] the private members of xterm.js are verified before they are written to', () => {
    const open = () => openXterm(8, 2, 1);
    expect(open().verified).toBe(true);
    expect(verifyInternals(open())).toBe(true);
    const changes: ((xterm: Xterm) => object)[] = [
      ({ inner }) => ({ ...inner, _bufferService: undefined }),
      ({ inner }) => ({ ...inner, coreService: { ...inner.coreService, isCursorHidden: false } }),
      ({ inner }) => ({ ...inner, _oscLinkService: {} }),
    ];
    for (const change of changes) {
      const xterm = open();
      const inner = change(xterm) as Inner;
      expect(verifyInternals({ terminal: xterm.terminal, inner })).toBe(false);
    }
  });

  test('[SC3] tells every attribute of a cell', () => {
    const { styles, rowsShown } = shown(
      emulator(
        '\x1b[1;2;3;4:3;5;7;8;9;53;31;48;2;1;2;3;58;5;9mx\x1b[0m\x1b]8;;https://a.b\x07y\x1b]8;;\x07',
      ),
    );
    expect(styles[rowsShown[0]?.styles[0] ?? 0]).toEqual({
      fg: 1,
      bg: '#010203',
      bold: true,
      dim: true,
      italic: true,
      underline: 'curly',
      underlineColour: 9,
      blink: true,
      inverse: true,
      invisible: true,
      strikethrough: true,
      overline: true,
    });
    expect(styles[rowsShown[0]?.styles[1] ?? 0]).toEqual({
      fg: 'default',
      bg: 'default',
      link: 'https://a.b',
    });
  });

  test('[SC3] a wide character takes two columns, the second of them empty', () => {
    const [row] = shown(emulator('漢a👍b')).rowsShown;
    expect(row?.chars.slice(0, 7)).toEqual(['漢', '', 'a', '👍', '', 'b', ' ']);
    expect(
      ['a', '漢', '\u0301', '👍', '\u200d', 'ｱ'].map((c) => characterWidth(c.codePointAt(0) ?? 0)),
    ).toEqual([1, 2, 0, 2, 0, 1]);
  });

  test('[SC3] says where the program did not end a line', () => {
    const wrapped = shown(emulator('a'.repeat(25), '\r\nb'));
    expect(visibleLines(wrapped).slice(0, 3)).toEqual(['a'.repeat(20), 'aaaaa', 'b']);
    expect(wrapped.rowsShown.slice(0, 3).map((row) => row.wrapped)).toEqual([false, true, false]);
  });

  test('[SC3] modes, cursor and title are what the program made them', () => {
    const made = shown(
      emulator(
        '\x1b[?1h\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?1049h\x1b[3;5H\x1b[4 q\x1b[?25l\x1b]2;a\u202eb\x07',
      ),
    );
    expect(made.modes).toMatchObject({
      applicationCursor: true,
      bracketedPaste: true,
      mouse: 'any',
      mouseSgr: true,
      alternateScreen: true,
    });
    expect(made.cursor).toEqual({
      row: 2,
      col: 4,
      visible: false,
      shape: 'underline',
      blink: false,
    });
    expect(made.title).toBe('ab');
  });
});

describe('what a terminal answers', () => {
  const answer = (asked: string): string => {
    const asking = emulator(asked);
    return asking.takeAnswers().join('');
  };

  test.each([
    ['who it is', '\x1b[c', '\x1b[?1;2c'],
    ['which version of that', '\x1b[>c', '\x1b[>0;276;0c'],
    ['how it is', '\x1b[5n', '\x1b[0n'],
    ['where its cursor is', 'ab\r\nc\x1b[6n', '\x1b[2;2R'],
    ['its size', '\x1b[18t', '\x1b[8;6;20t'],
    ['its foreground', '\x1b]10;?\x07', '\x1b]10;rgb:d8d8/dede/e6e6\x07'],
    [
      'its background, ending as it was asked',
      '\x1b]11;?\x1b\\',
      '\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\',
    ],
    ['a colour of the palette', '\x1b]4;1;?\x07', '\x1b]4;1;rgb:e5e5/6161/6b6b\x07'],
    ['a mode', '\x1b[?2004h\x1b[?2004$p', '\x1b[?2004;1$y'],
  ])('[SC4] %s', (_what, asked, answered) => {
    expect(answer(asked)).toBe(answered);
  });

  test('[SC4] its own name for its version', () => {
    expect(answer('\x1b[>q')).toBe(`\x1bP>|holdfast(${VERSION})\x1b\\`);
  });

  test('[SC4] (38) in order, and once, wherever the question is cut', () => {
    const asked = Buffer.from('\x1b]11;?\x1b\\\x1b[6n\x1b]10;?\x07\x1b[5n');
    const whole = answer(asked.toString());
    for (let cut = 0; cut <= asked.length; cut += 1) {
      const cutOnce = emulator();
      cutOnce.feed(asked.subarray(0, cut));
      const first = cutOnce.takeAnswers().join('');
      cutOnce.feed(asked.subarray(cut));
      expect(first + cutOnce.takeAnswers().join('')).toBe(whole);
    }
  });

  test.each([
    ['the title', '\x1b]2;rm -rf ~\x07\x1b[21t\x1b[20t'],
    ['the clipboard', '\x1b]52;c;cm0gLXJm\x07\x1b]52;c;?\x07'],
    ['a setting that it does not know', '\x1bP$qrm -rf\x1b\\'],
    ['a colour that was set', '\x1b]10;#abcdef\x07\x1b]10;?\x07'],
    ['a name of a terminal capability', '\x1bP+q726d\x1b\\'],
    ['answerback', '\x05'],
  ])('[SC4] never with text of the program: %s', (_what, asked) => {
    expect(answer(asked)).not.toMatch(/rm|cm0|abab|ABCDEF|726d/i);
  });

  test('[SC4] a flood of questions gets few answers', () => {
    const asking = emulator('\x1b[6n'.repeat(10_000));
    expect(asking.takeAnswers().length).toBe(64);
  });
});

describe('the guard', () => {
  test('[SC5] erasing up to the last column of the last line works, which it does not in the emulator itself', () => {
    const corner = emulator('top\x1b[6;20H');
    expect(corner.feed(Buffer.from('\x1b[1Jx'))).toBe(true);
    expect(visibleLines(shown(corner))).toEqual(['', '', '', '', '', `${' '.repeat(19)}x`]);
  });

  test('[SC5] memory that a program can take by strings, links and marks is bounded', () => {
    const greedy = emulator(`\x1b]2;${'t'.repeat(1_000_000)}\x07`);
    expect(shown(greedy).title).toBe('');
    greedy.feed(Buffer.from(`a${'\u0301'.repeat(10_000)}`));
    expect(shown(greedy).rowsShown[0]?.chars[0]?.length).toBeLessThan(40);
    for (let n = 0; n < 6000; n += 1)
      greedy.feed(Buffer.from(`\x1b]8;;https://a/${n}\x07x\x1b]8;;\x07`));
    const links = shown(greedy).styles.filter(({ link }) => link !== undefined);
    expect(links.length).toBeLessThanOrEqual(4096);
  });

  test('[SC5] a count beyond the screen does what the whole screen would', () => {
    const text = 'one\r\ntwo\r\nthree\x1b[2;1H';
    for (const final of 'LMST@PXIZ') {
      const plain = emulator(
        text,
        `\x1b[${final === '@' || final === 'P' || final === 'X' || final === 'I' || final === 'Z' ? SIZE.cols : SIZE.rows}${final}`,
      );
      expect(shown(emulator(text, `\x1b[2147483647${final}`))).toEqual(shown(plain));
    }
  });
});
