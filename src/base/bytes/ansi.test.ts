import * as fc from '../../../test/support/properties.ts';
import { expect, test } from 'vitest';
import { stripAnsi } from './ansi.ts';

const sequences = fc.constantFrom(
  '\x1b[31m',
  '\x1b[0;1;38;5;200m',
  '\x1b[?25l',
  '\x1b[2 q',
  '\x1b]0;title\x07',
  '\x1b]8;;https://example.org/a?b=c\x1b\\',
  '\x1bP1$r0m\x1b\\',
  '\x1b_apc\x1b\\',
  '\x1b(B',
  '\x1b7',
  '\x1bM',
);
const plain = fc.string({ unit: 'grapheme', maxLength: 6 }).filter((text) => !/\p{Cc}/u.test(text));
const coloured = fc.array(fc.tuple(plain, sequences), { maxLength: 8 });

test('[V5] control sequences are removed and nothing else', () => {
  expect(stripAnsi('\x1b[1;31merror\x1b[0m: \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\')).toBe(
    'error: link',
  );
  fc.assert(
    fc.property(coloured, (parts) => {
      expect(stripAnsi(parts.flat().join(''))).toBe(parts.map(([text]) => text).join(''));
    }),
    { numRuns: 1000 },
  );
});

test('[V5] a split sequence shows nothing of itself: a prefix gives a prefix', () => {
  const any = fc.string({
    unit: fc.constantFrom('\x1b', '[', ']', ';', '1', 'm', '\\', '\x07', 'x', '\n', 'P', '(', '€'),
  });
  fc.assert(
    fc.property(
      fc.oneof(
        coloured.map((parts) => parts.flat().join('')),
        any,
      ),
      (text) => {
        const whole = stripAnsi(text, true);
        for (let at = 0; at <= text.length; at += 1) {
          expect(whole.startsWith(stripAnsi(text.slice(0, at), true))).toBe(true);
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test('[V5] an unfinished title hides neither its line nor the next', () => {
  expect(stripAnsi('\x1b]0;never ended\nnext')).toBe('0;never ended\nnext');
  expect(stripAnsi('a\x1b]0;never ended')).toBe('a0;never ended');
  expect(stripAnsi('a\x1b]0;still com', true)).toBe('a');
  expect(stripAnsi('a\x1b[31')).toBe('a');
  expect(stripAnsi('a\x1b')).toBe('a');
  const any = fc.string({ unit: fc.constantFrom('\x1b', '[', ']', '\\', '\x07', 'x', '\n') });
  fc.assert(
    fc.property(any, (text) => {
      expect(stripAnsi(text)).toBe(
        text
          .split('\n')
          .map((line) => stripAnsi(line))
          .join('\n'),
      );
    }),
    { numRuns: 1000 },
  );
});

test('[V5] two million unfinished sequences take linear time', () => {
  for (const unit of ['\x1b]', '\x1b', '\x1b[', '\x1b[1;', '\x1b]0;x\n', '\x1bP\x1b'])
    expect(stripAnsi(`before${unit.repeat(2_000_000)}`).startsWith('before')).toBe(true);
});
