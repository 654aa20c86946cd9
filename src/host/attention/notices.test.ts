// The bell and notices in the output of a terminal, however it is cut.
import { describe, expect, it } from 'vitest';
import * as fc from '../../../test/support/properties.ts';
import { NoticeScanner } from './notices.ts';

function last(...pieces: string[]): string | undefined {
  const scanner = new NoticeScanner();
  let found: string | undefined;
  for (const piece of pieces) found = scanner.scan(Buffer.from(piece))?.text ?? found;
  return found;
}

describe('notices of programs', () => {
  it('[DB19] are bells and OSC 9 and 777, not the ends of other strings and not progress', () => {
    expect(last('a bell\x07')).toBe('');
    expect(last('\x1b]9;done\x07')).toBe('done');
    expect(last('\x1b]9;done\x1b\\')).toBe('done');
    expect(last('\x1b]777;notify;Build;has ended\x07')).toBe('Build: has ended');
    expect(last('\x1b]0;a title\x07', 'text', '\x1b[31mred\x1b[0m')).toBeUndefined();
    expect(last('\x1b]9;4;1;50\x07')).toBeUndefined();
    expect(last(`\x1b]52;c;${'A'.repeat(5000)}`, 'A'.repeat(5000), '\x07')).toBeUndefined();
    expect(last(`\x1b]52;c;${'A'.repeat(5000)}\x07\x07`)).toBe('');
    expect(last('\x07\x1b]9;later\x07')).toBe('later');
    expect(last('\x1b]9;first\x07\x07')).toBe('');
  });

  it('[DB19] are the same however the output is cut', () => {
    const part = fc.constantFrom(
      '\x07',
      '\x1b]',
      '9;',
      '777;notify;',
      'text',
      '\x1b\\',
      '\x1b[m',
      ';',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 20 }), fc.nat(40), (parts, at) => {
        const text = parts.join('');
        expect(last(text.slice(0, at), text.slice(at))).toBe(last(text));
      }),
    );
  });
});
