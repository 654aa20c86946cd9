// What is typed, as bytes.
import * as fc from '../../../test/support/properties.ts';
import { describe, expect, test } from 'vitest';
import { checkKeys, encodeKeys, encodePaste } from './keys.ts';
import type { KeyModes } from './keys.ts';

const plain: KeyModes = {
  applicationCursor: false,
  bracketedPaste: false,
  mouse: 'none',
  mouseSgr: false,
};
const keys = (...names: string[]): string => encodeKeys(names, plain).toString();

describe('keys', () => {
  test.each([
    ['Enter', '\r'],
    ['Tab', '\t'],
    ['Escape', '\x1b'],
    ['Backspace', '\x7f'],
    ['BSpace', '\x7f'],
    ['Space', ' '],
    ['Up', '\x1b[A'],
    ['Down', '\x1b[B'],
    ['Right', '\x1b[C'],
    ['Left', '\x1b[D'],
    ['Home', '\x1b[H'],
    ['End', '\x1b[F'],
    ['Insert', '\x1b[2~'],
    ['IC', '\x1b[2~'],
    ['Delete', '\x1b[3~'],
    ['DC', '\x1b[3~'],
    ['PageUp', '\x1b[5~'],
    ['PPage', '\x1b[5~'],
    ['PageDown', '\x1b[6~'],
    ['NPage', '\x1b[6~'],
    ['F1', '\x1bOP'],
    ['F4', '\x1bOS'],
    ['F5', '\x1b[15~'],
    ['F12', '\x1b[24~'],
    ['BTab', '\x1b[Z'],
    ['Shift+Tab', '\x1b[Z'],
    ['C-c', '\x03'],
    ['ctrl+c', '\x03'],
    ['Ctrl+C', '\x03'],
    ['^C', '\x03'],
    ['C-Space', '\x00'],
    ['ctrl+@', '\x00'],
    ['ctrl+[', '\x1b'],
    ['ctrl+\\', '\x1c'],
    ['ctrl+]', '\x1d'],
    ['ctrl+^', '\x1e'],
    ['ctrl+_', '\x1f'],
    ['ctrl+?', '\x7f'],
    ['M-x', '\x1bx'],
    ['alt+x', '\x1bx'],
    ['C-M-x', '\x1b\x18'],
    ['S-Left', '\x1b[1;2D'],
    ['ctrl+Right', '\x1b[1;5C'],
    ['ctrl+alt+Delete', '\x1b[3;7~'],
    ['C-F5', '\x1b[15;5~'],
    ['alt+F1', '\x1b[1;3P'],
    ['alt+Enter', '\x1b\r'],
    ['shift+a', 'A'],
    ['ä', 'ä'],
    ['漢', '漢'],
    ['👍', '👍'],
    ['+', '+'],
    ['-', '-'],
    ['M--', '\x1b-'],
    ['alt++', '\x1b+'],
    ['a', 'a'],
    ['A', 'A'],
  ])('[SC6] %s', (name, bytes) => {
    expect(keys(name)).toBe(bytes);
  });

  test('[SC6] arrows are those of the mode the program has set', () => {
    const application = { ...plain, applicationCursor: true };
    expect(encodeKeys(['Up', 'Home', 'C-Up'], application).toString()).toBe(
      '\x1bOA\x1bOH\x1b[1;5A',
    );
  });

  test('[SC6] what is no key is refused before anything is sent', () => {
    for (const name of ['', 'Entre', 'hyper+x', 'F13', 'C-ä', 'ctrl+5', 'ab'])
      expect(() => checkKeys(['Enter', name])).toThrow(
        expect.objectContaining({ code: 'invalid_input' }),
      );
    expect(() => checkKeys(['Enter', 'C-c', 'ü'])).not.toThrow();
  });
});

describe('a paste', () => {
  test('[SC7] is bracketed only when the program asked for that', () => {
    expect(encodePaste('a\nb\r\nc', plain).toString()).toBe('a\rb\rc');
    expect(encodePaste('a\nb', { ...plain, bracketedPaste: true }).toString()).toBe(
      '\x1b[200~a\rb\x1b[201~',
    );
  });

  test('[SC7] cannot end its own brackets, however it is put together', () => {
    const part = fc.constantFrom(
      '\x1b[201~',
      '\x1b[2',
      '01~',
      '\x1b',
      '[201~',
      '\u009b201~',
      'x',
      '\x1b[200~',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const bytes = encodePaste(parts.join(''), { ...plain, bracketedPaste: true }).toString();
        expect(bytes.startsWith('\x1b[200~') && bytes.endsWith('\x1b[201~')).toBe(true);
        expect(bytes.indexOf('\x1b[201~')).toBe(bytes.length - 6);
        expect(bytes).not.toContain('\u009b201~');
      }),
    );
  });
});
