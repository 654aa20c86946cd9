import {
  array,
  assert as assertProperty,
  constantFrom,
  integer,
  nat,
  oneof,
  property,
  string,
} from '../../../test/support/properties.ts';
import { describe, expect, it } from 'vitest';
import { ByteScanner } from './byte-scanner.ts';
import { MarkPattern, type Mark } from './marks.ts';
import { Sentinel } from './sentinel.ts';

const NONCE = '0123456789abcdef';
const osc = (body: string): string => `\x1b]133;${body}\x07`;
const markTexts = [
  osc(`D;${NONCE};0;/home/ä b`),
  osc(`D;${NONCE};130;/`),
  osc(`B;${NONCE}`),
  osc(`C;${NONCE}`),
  osc(`P;${NONCE}`),
];
/** Things that look nearly like ours, and must come through as they are. */
const lookAlikes = [
  osc('D;0'),
  osc(`D;ffffffffffffffff;0;/`),
  osc(`X;${NONCE}`),
  `\x1b]133;B;${NONCE}x\x07`,
  '\x1b]0;title\x07',
  '\x1b_hfAAAAAA;0\x1b\\',
  '\x1b[31mred\x1b[0m',
  "(s=$?;printf '\\033\\137",
  '\x1b',
  '\x1b]133;',
  'plain text\r\n',
];

interface Seen {
  readonly text: string;
  readonly marks: { mark: Mark; at: number }[];
}

function scan(
  chunks: readonly Buffer[],
  arm?: (scanner: ByteScanner, at: () => number) => void,
): Seen {
  const passed: Buffer[] = [];
  const marks: { mark: Mark; at: number }[] = [];
  const at = (): number => passed.reduce((total, each) => total + each.length, 0);
  const scanner = new ByteScanner((bytes) => passed.push(Buffer.from(bytes)));
  scanner.patterns.add(new MarkPattern(NONCE, (mark) => marks.push({ mark, at: at() })));
  arm?.(scanner, at);
  for (const chunk of chunks) {
    const lent = Buffer.from(chunk);
    scanner.push(lent);
    // What was pushed is only lent.
    lent.fill(0x2a);
  }
  scanner.end();
  return { text: Buffer.concat(passed).toString('latin1'), marks };
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort(
    (a, b) => a - b,
  );
  let from = 0;
  const parts = ends.map((end) => bytes.subarray(from, (from = end)));
  return [...parts, bytes.subarray(from)];
}

describe('marks in the output', () => {
  it('[TM1] are taken out exactly, with the place where they stood, however the output is cut', () => {
    const piece = oneof(
      constantFrom(...markTexts).map((text) => ({ text, mark: true })),
      constantFrom(...lookAlikes).map((text) => ({ text, mark: false })),
      string().map((text) => ({ text: text.replaceAll('\x1b', ''), mark: false })),
    );
    assertProperty(
      property(
        array(piece, { maxLength: 12 }),
        array(nat(), { maxLength: 12 }),
        (pieces, places) => {
          // An unfinished look-alike would swallow what follows it, in a terminal too: it ends with a line here.
          const texts = pieces.map(({ text, mark }) => (mark ? text : `${text}\n`));
          const whole = Buffer.from(texts.join(''));
          const once = scan([whole]);
          const expected = texts.filter((_, index) => pieces[index]?.mark === false).join('');
          expect(once.text).toBe(Buffer.from(expected).toString('latin1'));
          expect(once.marks).toHaveLength(pieces.filter(({ mark }) => mark).length);
          expect(scan(cut(whole, places))).toEqual(once);
        },
      ),
    );
  });

  it('[TM1] are found when every byte comes alone, and tell status and directory', () => {
    const text = `before${markTexts[0]}between${markTexts[1]}after`;
    const seen = scan(Array.from(Buffer.from(text), (byte) => Buffer.of(byte)));
    expect(seen.text).toBe('beforebetweenafter');
    expect(seen.marks).toEqual([
      { mark: { kind: 'end', status: 0, cwd: '/home/ä b' }, at: 6 },
      { mark: { kind: 'end', status: 130, cwd: '/' }, at: 13 },
    ]);
  });

  it('[TM1] whose directory holds a control character count without it', () => {
    const seen = scan([Buffer.from(osc(`D;${NONCE};3;/a\nb`))]);
    expect(seen.marks).toEqual([{ mark: { kind: 'end', status: 3 }, at: 0 }]);
  });

  it('[TM1] that never end are given back, and bound what is held', () => {
    const long = Buffer.from(`\x1b]133;D;${NONCE};0;/${'a'.repeat(10_000)}`);
    expect(scan([long]).text).toBe(long.toString('latin1'));
    const passed: number[] = [];
    const scanner = new ByteScanner((bytes) => passed.push(bytes.length));
    scanner.patterns.add(new MarkPattern(NONCE, () => undefined));
    for (const byte of long) scanner.push(Buffer.of(byte));
    expect(long.length - passed.reduce((total, each) => total + each, 0)).toBeLessThan(4400);
  });
});

describe('a sentinel in the output', () => {
  const armed =
    (seen: { statuses: { status: number; at: number }[] }, into: { sentinel?: Sentinel }) =>
    (scanner: ByteScanner, at: () => number): void => {
      into.sentinel = new Sentinel((status) => seen.statuses.push({ status, at: at() }));
      scanner.patterns.add(into.sentinel.string).add(into.sentinel.echo);
    };

  /** As a line editor shows it: wrapped at a width, with control sequences in between. */
  const shown = (line: string, width: number): string =>
    line
      .replace(new RegExp(`.{${width}}(?=.)`, 'g'), (part) => `${part} \r`)
      .replace('printf', 'pri\x1b[Kntf');

  it('[TM2] (20) and its echo are taken out wherever they are cut, and nothing else is', () => {
    assertProperty(
      property(
        array(nat(), { maxLength: 10 }),
        nat(255),
        integer({ min: 9, max: 70 }),
        constantFrom(...lookAlikes),
        (places, status, width, between) => {
          const results = [false, true].map((cutUp) => {
            const seen: { statuses: { status: number; at: number }[] } = { statuses: [] };
            const into: { sentinel?: Sentinel } = {};
            const passed: Buffer[] = [];
            const scanner = new ByteScanner((bytes) => passed.push(Buffer.from(bytes)));
            armed(seen, into)(scanner, () =>
              passed.reduce((total, each) => total + each.length, 0),
            );
            const { token = '', line = '' } = into.sentinel ?? {};
            const text = `$ ls\r\n${between}\n$  ${shown(line.trimStart(), width)}\r\n\x1b_${token};${status}\x1b\\$ `;
            const bytes = Buffer.from(text);
            for (const part of cutUp ? cut(bytes, places) : [bytes]) scanner.push(part);
            scanner.end();
            return { text: Buffer.concat(passed).toString(), statuses: seen.statuses };
          });
          const expected = `$ ls\r\n${between}\n$  \r\n$ `;
          for (const { text, statuses } of results) {
            expect(text).toBe(expected);
            expect(statuses).toEqual([{ status, at: Buffer.byteLength(expected) - 2 }]);
          }
        },
      ),
    );
  });

  it('[TM2] two at once are distinguished, though their echoes begin alike', () => {
    const reported: string[] = [];
    const passed: Buffer[] = [];
    const scanner = new ByteScanner((bytes) => passed.push(Buffer.from(bytes)));
    const both = ['one', 'two'].map(
      (name) => new Sentinel((status) => reported.push(`${name}${status}`)),
    );
    for (const { string, echo } of both) scanner.patterns.add(string).add(echo);
    const typed = both.map(({ line }) => `${line.trimStart()}\r\n`).join('');
    const printed = both.map(({ token }, index) => `\x1b_${token};${index}\x1b\\`).join('');
    for (const byte of Buffer.from(`${typed}a${printed}b`)) scanner.push(Buffer.of(byte));
    scanner.end();
    expect(Buffer.concat(passed).toString()).toBe('\r\n\r\nab');
    expect(reported).toEqual(['one0', 'two1']);
  });

  it('[TM2] [TM17] a text that only begins like its echo passes whole: armed, it harms no later output', () => {
    const seen: { statuses: { status: number; at: number }[] } = { statuses: [] };
    const into: { sentinel?: Sentinel } = {};
    const passed: Buffer[] = [];
    const scanner = new ByteScanner((bytes) => passed.push(Buffer.from(bytes)));
    armed(seen, into)(scanner, () => 0);
    const history = `  12  ls\r\n  13  ${(into.sentinel?.line ?? '').slice(0, -6)} 033137\r\n`;
    scanner.push(Buffer.from(history));
    scanner.end();
    expect(Buffer.concat(passed).toString()).toBe(history);
    expect(seen.statuses).toEqual([]);
  });
});
