import * as fc from '../../../test/support/properties.ts';
import { describe, expect, it } from 'vitest';
import { quote, quoteJson, quoteLine, TerminalText, visible } from './terminal-text.ts';

// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/;

function shown(...pieces: (string | Uint8Array)[]): string {
  const text = new TerminalText();
  return pieces.map((piece) => text.push(Buffer.from(piece))).join('') + text.end();
}

/** Bytes that terminals care about, more often than others. */
const bytes = fc
  .array(
    fc.oneof(
      fc.constantFrom(0x1b, 0x5b, 0x5d, 0x3b, 0x6d, 0x07, 0x5c, 0x0a, 0x9b, 0xc2, 0x33),
      fc.nat(255),
    ),
    { maxLength: 60 },
  )
  .map((list) => Buffer.from(list));

describe('text for a terminal', () => {
  it.each([
    ['plain\tand\r\nlines\n', 'plain\tand\r\nlines\n'],
    ['\x1b[1;31mred\x1b[0m', 'red'],
    ['\x1b]0;title\x07after', 'after'],
    ['\x1b]52;c;aGk=\x1b\\after', 'after'],
    ['bell\x07 back\x08 nul\0 del\x7f', 'bell^G back^H nul^@ del^?'],
    ['\u009b31m', '\\x9b31m'],
    ['é€😀', 'é€😀'],
    ['\x1b]0;never ended\nnext line\n', '0;never ended\nnext line\n'],
    ['open \x1b[3', 'open '],
  ])('[C6] turns %j into %j', (from, to) => {
    expect(shown(from)).toBe(to);
  });

  it('[C6] shows the same however the bytes are cut, and never a control character', () => {
    const property = fc.property(bytes, fc.array(fc.nat(60), { maxLength: 4 }), (all, cuts) => {
      const places = [
        0,
        ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b),
        all.length,
      ];
      const pieces = places.slice(1).map((end, index) => all.subarray(places[index], end));
      const text = shown(...pieces);
      expect(text).not.toMatch(controls);
      expect(text).toBe(shown(all));
      expect(text).toBe(shown(...Array.from(all, (byte) => Buffer.of(byte))));
    });
    fc.assert(property, { numRuns: 2000 });
  });

  it('[C31] lets colours pass where they are wanted, however they are cut, and nothing else', () => {
    const coloured = (...pieces: string[]): { shown: string; coloured: boolean } => {
      const text = new TerminalText();
      text.colours = true;
      const answer = pieces.map((piece) => text.push(Buffer.from(piece))).join('') + text.end();
      return { shown: answer, coloured: text.coloured };
    };
    const all = 'a\x1b[1;38:5:9mred\x1b[0m \x1b[2J\x1b]0;t\x07\x1b[?1049h\u009b31m\x1b[3';
    const shown = 'a\x1b[1;38:5:9mred\x1b[0m \\x9b31m';
    expect(coloured(all)).toEqual({ shown, coloured: false });
    expect(coloured(...Array.from(all))).toEqual({ shown, coloured: false });
    expect(coloured('\x1b[7mleft')).toEqual({ shown: '\x1b[7mleft', coloured: true });
    const property = fc.property(bytes, (each) => {
      const text = new TerminalText();
      text.colours = true;
      // oxlint-disable-next-line no-control-regex
      const rest = (text.push(each) + text.end()).replaceAll(/\x1b\[[\d;:]*m/g, '');
      expect(rest).not.toMatch(controls);
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it('[C6] holds back a little at most, and shows all the text of an endless line', () => {
    const text = new TerminalText();
    text.push(Buffer.from('\x1b]0;'));
    let length = 0;
    for (let index = 0; index < 100; index += 1)
      length += text.push(Buffer.alloc(1000, 'x')).length;
    expect(length).toBeGreaterThan(90_000);
    expect(shown('\x1b[31m', 'y'.repeat(100_000))).toBe('y'.repeat(100_000));
  });

  it('[C6] writes a name on one line with nothing hidden in it', () => {
    expect(quote('a\n\tb\r\x1b[31m\u202egnp\u009b')).toBe('a\\n\\tb\\r\\x1b[31m\\u202egnp\\x9b');
    expect(quote('a\u200bb\u2028c\u{e0041}d')).toBe('a\\u200bb\\u2028c\\u{e0041}d');
    expect(quoteLine('id\tna\nme')).toBe('id\tna\\nme');
    expect(quote('naïve ❤\ufe0f 名前 🎉 e\u0301')).toBe('naïve ❤\ufe0f 名前 🎉 e\u0301');
  });

  it('[C6] leaves the joiners of output as they are, and shows what turns it around or breaks its lines', () => {
    expect(visible('line\n\x1b[31m')).toBe('line\n^[[31m');
    expect(visible('👩\u200d💻 می\u200cخواهم')).toBe('👩\u200d💻 می\u200cخواهم');
    expect(visible('a\u202eb\u2066c\u2029d')).toBe('a\\u202eb\\u2066c\\u2029d');
  });

  it('[C24] writes JSON that is the same value with nothing raw in it', () => {
    const value = { 'k\u202e': ['a\u2028\u{e0041}\u009b\u200d\x7f', { b: '\n' }] };
    for (const text of [quoteJson(value), quoteJson(value, 2)]) {
      expect(JSON.parse(text)).toEqual(value);
      // oxlint-disable-next-line no-control-regex
      expect(text).toMatch(/^[\n\x20-\x7e]+$/);
    }
  });
});
