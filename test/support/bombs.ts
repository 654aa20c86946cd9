// Bytes that cost a terminal emulator much: counts without measure, strings without end, work without use. Each is what a
// program (or a file that somebody looks at) might print.

export const bombs: Readonly<Record<string, () => Buffer>> = {
  'repeat the last character': () => Buffer.from('a\x1b[2147483647b'),
  'insert lines': () => Buffer.from('\x1b[2147483647L'),
  'delete lines': () => Buffer.from('\x1b[2147483647M'),
  'scroll up': () => Buffer.from('\x1b[2147483647S'),
  'scroll down': () => Buffer.from('\x1b[2147483647T'),
  'tabs forward': () => Buffer.from('\x1b[2147483647I'),
  'tabs back': () => Buffer.from('\x1b[2147483647Z'),
  'insert characters': () => Buffer.from('\x1b[2147483647@'),
  'delete characters': () => Buffer.from('\x1b[2147483647P'),
  'erase characters': () => Buffer.from('\x1b[2147483647X'),
  'insert columns': () => Buffer.from("\x1b[2147483647'}"),
  'delete columns': () => Buffer.from("\x1b[2147483647'~"),
  'scroll sideways': () => Buffer.from('\x1b[2147483647 @\x1b[2147483647 A'),
  'a thousand times insert lines': () => Buffer.from('\x1b[65535L'.repeat(1000)),
  'eight thousand times delete lines': () => Buffer.from('\x1b[65535M'.repeat(8000)),
  'five thousand repeats': () => Buffer.from('a\x1b[999999b'.repeat(5000)),
  'a hundred thousand links': () =>
    Buffer.from(
      Array.from({ length: 100_000 }, (_, n) => `\x1b]8;;https://a/${n}\x07x\x1b]8;;\x07`).join(''),
    ),
  'a title of twenty megabytes': () =>
    Buffer.concat([Buffer.from('\x1b]2;'), Buffer.alloc(20_000_000, 't'), Buffer.from('\x07')]),
  'a string without end': () => Buffer.concat([Buffer.from('\x1bP'), Buffer.alloc(5_000_000, 'q')]),
  'two million combining marks': () => Buffer.from(`a${'\u0301'.repeat(2_000_000)}`),
  'a line of ten megabytes': () => Buffer.alloc(10_000_000),
  'resets without end': () => Buffer.from('\x1bc'.repeat(100_000)),
  'both screens in turn': () => Buffer.from('\x1b[?1049h\x1b[?1049l'.repeat(50_000)),
  'alignment patterns': () => Buffer.from('\x1b#8'.repeat(100_000)),
  'parameters without end': () => Buffer.from(`\x1b[${'1;'.repeat(1_000_000)}m`),
  'a palette of questions': () => Buffer.from('\x1b]4;1;?\x07\x1b[6n\x1b[c'.repeat(100_000)),
};
