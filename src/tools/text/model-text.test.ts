import { describe, expect, it } from 'vitest';
import * as fc from '../../../test/support/properties.ts';
import { modelText, type ModelText, type Stretch } from './model-text.ts';
import { textRows } from './text-sheet.ts';

const fetchCall = (offset: number): string => `read ${offset}`;

function show(output: string | Buffer, maxBytes = 32_768): ModelText {
  const bytes = Buffer.from(output);
  const stretches = bytes.length > 0 ? [{ offset: 0, bytes }] : [];
  return modelText({ from: 0, to: bytes.length, stretches, maxBytes, fetchCall });
}

const bar = (percent: number): string => {
  const done = '#'.repeat(percent / 5).padEnd(20, ' ');
  return `[${done}] ${percent}%`;
};
const percents = Array.from({ length: 21 }, (_, index) => index * 5);
const bytes = (...values: (number | string)[]): Buffer =>
  Buffer.concat(
    values.map((each) => (typeof each === 'number' ? Buffer.from([each]) : Buffer.from(each))),
  );

/** What a program printed, and what a model reads. */
const dirty: readonly (readonly [what: string, output: string | Buffer, text: string])[] = [
  ['nothing', '', ''],
  ['plain lines', 'one\ntwo\n', 'one\ntwo\n'],
  ['no line break at the end', 'one\ntwo', 'one\ntwo'],
  ['colours', '\x1b[1;31merror\x1b[0m: no\n', 'error: no\n'],
  ['true colours and links', '\x1b[38;2;1;2;3mx\x1b]8;;http://a\x07link\x1b]8;;\x07\n', 'xlink\n'],
  ['a window title', '\x1b]0;title\x07ready\n', 'ready\n'],
  ['private modes', '\x1b[?25l\x1b[?2004hhidden\x1b[?25h\n', 'hidden\n'],
  ['questions to the terminal', 'a\x1b[6n\x1b[c\x1b[>0qb\n', 'ab\n'],
  ['CRLF', 'one\r\ntwo\r\n', 'one\ntwo\n'],
  [
    'a progress bar by carriage returns',
    percents.map((each) => `\r${bar(each)}`).join('') + '\n',
    `${bar(100)}\n`,
  ],
  ['a progress bar that erases its line', '\r\x1b[K10%\r\x1b[K55%\r\x1b[Kdone\n', 'done\n'],
  ['a bar that writes before it returns', '10%\r55%\rfinished\r\n', 'finished\n'],
  ['a shorter line over a longer one', 'downloading\rready\n', 'readyoading\n'],
  ['a spinner by backspaces', 'wait |\b/\b-\b\\\b ok\n', 'wait  ok\n'],
  ['overstruck bold', 'N\bNA\bAM\bME\bE\n', 'NAME\n'],
  ['two bars that move up', 'a 10%\nb 10%\n\x1b[2Aa 99%\nb 98%\n', 'a 99%\nb 98%\n'],
  ['what is erased below', 'one\ntwo\nthree\n\x1b[3A\x1b[Jnew\n', 'new\n\n\n'],
  [
    'the same line again and again',
    `start\n${'tick\n'.repeat(100)}end\n`,
    'start\ntick\n[the line above came 99 more times]\nend\n',
  ],
  [
    'the same three lines again and again',
    'a\nb\nc\n'.repeat(5),
    'a\nb\nc\n[the 3 lines above came 4 more times]\n',
  ],
  ['two equal lines', 'a\na\nb\n', 'a\na\nb\n'],
  [
    'progress in lines of its own',
    percents.map((each) => `${bar(each)}\n`).join(''),
    `${bar(0)}\n[19 more steps of this progress]\n${bar(100)}\n`,
  ],
  [
    'numbers that are no progress',
    'item 1\nitem 2\nitem 3\nitem 4\n',
    'item 1\nitem 2\nitem 3\nitem 4\n',
  ],
  ['many blank lines', `a${'\n'.repeat(9)}b\n`, 'a\n[8 blank lines]\nb\n'],
  ['Chinese, Japanese, Korean', '构建完成 ビルド 빌드\n', '构建完成 ビルド 빌드\n'],
  ['emoji of several parts', '👩‍💻 ✅\n', '👩‍💻 ✅\n'],
  ['a carriage return over wide characters', '编译 1\r编译 2\n', '编译 2\n'],
  ['Latin-1', bytes('caf', 0xe9, ' ok\n'), 'caf\ufffd ok\n'],
  ['a cut character at the end', bytes('ab', 0xe2, 0x82), 'ab\ufffd'],
  ['NUL and other control bytes', 'a\0b\x01c\x7fd\u0085e\n', 'a\\x00b\\x01c\\x7fd\\x85e\n'],
  ['a bell and a form feed', 'ding\x07\fdong\n', 'dingdong\n'],
  ['a tab', 'a\tb\n', 'a\tb\n'],
  [
    'binary',
    Buffer.concat([Buffer.from('ELF:\n'), Buffer.alloc(3000, 0), Buffer.from('\nend\n')]),
    'ELF:\n[3001 bytes of binary data]\nend\n',
  ],
  ['a sequence that never ends', 'a\x1b[31', 'a'],
  ['a cleared screen', 'old\n\x1b[H\x1b[2Jnew\n', 'old\nnew\n'],
];

describe('model text', () => {
  it(`[L3] is what a person would have read: ${dirty.length} dirty outputs`, () => {
    expect(dirty.map(([what, output]) => [what, show(output).text])).toEqual(
      dirty.map(([what, , text]) => [what, text]),
    );
    expect(dirty.filter(([, output]) => show(output).truncated)).toEqual([]);
  });

  it('[L4] 87: what fits is verbatim, to the byte', () => {
    for (const text of [
      '',
      'short',
      'x'.repeat(32_768),
      `${'line\n'.repeat(6553)}end`.padEnd(32_768, '!'),
    ]) {
      const distinct = text.includes('line')
        ? text.replace(/line/g, (_, at: number) => String(at).slice(-4).padStart(4, '0'))
        : text;
      expect(show(distinct)).toEqual({ text: distinct });
    }
  });

  it('[L4] 87: what does not fit is cut in the middle, within the size, with whole characters', () => {
    for (const output of [
      'a'.repeat(33_792),
      '€'.repeat(20_000),
      'é\n'.repeat(3) + '😀'.repeat(9000),
      'z'.repeat(2 * 1024 * 1024),
    ]) {
      const { text, truncated } = show(output);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768);
      expect(Buffer.byteLength(text)).toBeGreaterThan(output.includes('\n') ? 1000 : 32_700);
      expect(text).not.toContain('\ufffd');
      const total = Buffer.byteLength(output);
      expect(truncated).toMatchObject({ original_bytes: total, strategy: 'head_tail' });
      expect(text).toContain(
        `[omitted ${truncated?.omitted_bytes} bytes: read ${truncated?.omitted_offset}]`,
      );
    }
  });

  it('[L4] the counted bytes are the missing ones, and lie where the mark says', () => {
    const lines = Array.from(
      { length: 20_000 },
      (_, index) => `line ${index} ${'.'.repeat(index % 60)}`,
    );
    const output = `${lines.join('\n')}\n`;
    for (const size of [300, 1000, 4096, 32_768]) {
      const { text, truncated } = show(output, size);
      const [head = '', tail = ''] = text.split(/\.\.\. \[omitted \d+ bytes: read \d+\] \.\.\.\n/);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(size);
      expect(output.startsWith(head) && output.endsWith(tail)).toBe(true);
      expect(truncated).toEqual({
        original_bytes: output.length,
        retained_bytes: head.length + tail.length,
        omitted_bytes: output.length - head.length - tail.length,
        strategy: 'head_tail',
        omitted_offset: head.length,
      });
    }
  });

  it('[L4] two stretches with a gap between show both ends of the whole, also of one endless line', () => {
    const whole = Buffer.from('0123456789'.repeat(300_000));
    const stretch = (from: number, to: number): Stretch => ({
      offset: from,
      bytes: whole.subarray(from, to),
    });
    const stretches = [stretch(0, 100_000), stretch(2_900_000, 3_000_000)];
    const { text, truncated } = modelText({
      from: 0,
      to: whole.length,
      stretches,
      maxBytes: 2000,
      fetchCall,
    });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2000);
    const [head = '', tail = ''] = text.split(/\n\.\.\. \[.*\] \.\.\.\n/);
    expect(whole.toString().startsWith(head) && whole.toString().endsWith(tail)).toBe(true);
    expect(head.length).toBeGreaterThan(800);
    expect(truncated?.omitted_bytes).toBe(whole.length - head.length - tail.length);
    expect(truncated?.omitted_offset).toBe(head.length);
  });

  it('[L3] the rows divide the bytes among them without a hole, whatever was printed', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '\r',
        '\n',
        '\x1b[2A',
        '\x1b[K',
        '\x1b[5;5H',
        '\x1b[J',
        '\b',
        '\x1b[3C',
        '\x1b',
        '\x1b[B',
      ),
      fc.string({ maxLength: 6 }),
      fc.uint8Array({ maxLength: 6 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const output = Buffer.concat(pieces.map((each) => Buffer.from(each as string)));
        const rows = textRows(output, 7);
        expect(rows[0]?.start).toBe(7);
        expect(rows.at(-1)?.end).toBe(7 + output.length);
        for (const [index, row] of rows.entries())
          expect(rows[index + 1]?.start ?? row.end).toBe(row.end);
        const { text } = show(output, 300);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(300);
        // oxlint-disable-next-line no-control-regex
        expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      }),
      { numRuns: 1000 },
    );
  });
});
