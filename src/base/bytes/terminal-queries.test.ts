import { expect, it } from 'vitest';
import { VERSION } from '../version.ts';
import { answersOfScreen, TerminalQueries } from './terminal-queries.ts';

const grid = () => ({ cols: 80, rows: 24 });
const of = (...pieces: string[]): string[] => {
  const queries = new TerminalQueries();
  return pieces.flatMap((piece) => queries.answers(Buffer.from(piece, 'latin1'), grid));
};

const rows: readonly (readonly [query: string, ...answers: string[]])[] = [
  ['\x1b[c', '\x1b[?1;2c'],
  ['\x1b[0c', '\x1b[?1;2c'],
  ['\x1b[>c', '\x1b[>0;276;0c'],
  ['\x1b[5n', '\x1b[0n'],
  ['\x1b[>q', `\x1bP>|holdfast(${VERSION})\x1b\\`],
  ['\x1b[14t', '\x1b[4;408;720t'],
  ['\x1b[16t', '\x1b[6;17;9t'],
  ['\x1b[18t', '\x1b[8;24;80t'],
  ['\x1b]11;?\x07', '\x1b]11;rgb:1e1e/1e1e/2e2e\x07'],
  ['\x1b]11;?\x1b\\', '\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\'],
  ['\x1b]10;?;?\x07', '\x1b]10;rgb:d8d8/dede/e6e6\x07', '\x1b]11;rgb:1e1e/1e1e/2e2e\x07'],
  [
    '\x1b]4;1;?;255;?\x1b\\',
    '\x1b]4;1;rgb:e5e5/6161/6b6b\x1b\\',
    '\x1b]4;255;rgb:eeee/eeee/eeee\x1b\\',
  ],
];

it('[TM136] answers what needs no screen, in order, and ends a colour as the query ended', () => {
  for (const [query, ...answers] of rows) expect(of(`a${query}b`)).toEqual(answers);
  expect(of(rows.map(([query]) => query).join('text'))).toEqual(
    rows.flatMap(([, ...answers]) => answers),
  );
});

it('[TM136] finds a query wherever its bytes are cut', () => {
  for (const [query, ...answers] of rows)
    for (let at = 1; at < query.length; at += 1)
      for (const second of [query.slice(at), `${query.slice(at)} and more`])
        expect(of(`before${query.slice(0, at)}`, second)).toEqual(answers);
});

it.each([
  '\x1b[6n',
  '\x1b[?1;2c',
  '\x1b[31m\x1b[2J',
  '\x1b]11;rgb:0/0/0\x07',
  '\x1b]4;300;?\x07',
  '\x1b]4;?\x07',
  '\x1b]0;10;?\x07',
  '\x1b[21t',
  `\x1b]11;${'1;'.repeat(100)}?\x07`,
])('[TM136] does not answer %j', (text) => {
  expect(of(text)).toEqual([]);
});

it('[TM136] never takes its own answer for a query, and knows it from those that need a screen', () => {
  const own = rows.flatMap(([, ...answers]) => answers).join('');
  expect(of(own)).toEqual([]);
  const others = '\x1b[3;7R\x1b[?2026;2$y\x1bP1$r0m\x1b\\';
  expect(answersOfScreen(`${own}${others}`)).toBe(others);
});
