import { describe, expect, it } from 'vitest';
import { alignedRows, cut, tabbedRow } from './table.ts';

describe('columns', () => {
  it('[C10] are aligned, and the last one is cut to the width', () => {
    const rows = [
      ['ID', 'NAME', 'COMMAND'],
      ['a', 'short', 'true'],
      ['bbb', '日本', 'echo a long command'],
    ];
    expect(alignedRows(rows, 25)).toEqual([
      'ID   NAME   COMMAND',
      'a    short  true',
      'bbb  日本   echo a long …',
    ]);
    expect(alignedRows([['a', 'b'.repeat(50)]], 5)).toEqual(['a  bbbbbbbbb…']);
  });

  it('[C10] count a wide letter as two and a combining mark as none', () => {
    expect(cut('日本語です', 7)).toBe('日本語…');
    expect(cut('e\u0301e\u0301e\u0301', 3)).toBe('e\u0301e\u0301e\u0301');
    expect(cut('😀😀', 3)).toBe('😀…');
  });

  it('[C10] are separated by tabs for a program, and no cell contains one', () => {
    expect(tabbedRow(['a\tb', 'c\nd', ''])).toBe('a\\tb\tc\\nd\t');
  });
});
