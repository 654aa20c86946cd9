// Pictures and recordings: looked at pixel by pixel where it matters, and read back by other code than wrote them.
import { afterAll, describe, expect, test } from 'vitest';
import { decodeGif, decodePng } from '../../../test/support/decode-pictures.ts';
import { Tape } from '../../../test/support/screen-events.ts';
import { systemClock } from '../../base/clock.ts';
import type { ProcessEvent } from '../../protocol/event.ts';
import { asciicast } from '../recording/asciicast.ts';
import type { AsciicastOptions } from '../recording/asciicast.ts';
import { Emulator, type Look } from '../emulator/emulator.ts';
import { difference } from '../recording/film.ts';
import { Glyphs } from './glyphs.ts';
import { renderHtml } from './html.ts';
import { MachineFonts } from './machine-fonts.ts';
import { Painter } from './painter.ts';
import { Pictures } from './pictures.ts';
import { record } from '../recording/recordings.ts';
import { repaint } from '../view/repaint.ts';
import { toSnapshot } from '../view/view.ts';
import type { View } from '../view/view.ts';
import { visibleLines } from '../view/snapshot.ts';
import type { ScreenText, Snapshot } from '../view/snapshot.ts';
import { structuredSnapshot } from '../view/snapshot-shape.ts';
import { renderSvg } from './svg.ts';
import { darkTheme, lightTheme, themes } from './theme.ts';

const size = { cols: 20, rows: 4 } as const;
const glyphs = new Glyphs(1);
const { cellWidth, cellHeight } = glyphs.metrics;

function lookAt(
  text: string,
  { cols, rows }: { cols: number; rows: number } = size,
  behind = false,
): Look {
  const emulator = new Emulator(cols, rows, 100);
  emulator.feed(Buffer.from(text));
  return emulator.look(100, behind);
}

function snapshotOf(text: string, of: { cols: number; rows: number } = size): Snapshot {
  return toSnapshot(lookAt(text, of), 1, []);
}

function viewOf(text: string, of: { cols: number; rows: number } = size): View {
  return { look: lookAt(text, of), seq: 1, skipped: [] };
}

/** Without the lines above the screen. */
function textShown({ text, rows }: ScreenText): string {
  return text.split('\n').slice(-rows).join('\n');
}

/** The pixels of cells, without margin and cursor. */
function paint(text: string, theme = darkTheme): (col: number, row: number) => Uint32Array {
  const painter = new Painter(glyphs, { theme, showCursor: false, padding: 0, shades: 255 });
  const { pixels, width } = painter.paint(snapshotOf(text));
  return (col, row) =>
    Uint32Array.from({ length: cellWidth * cellHeight }, (_, n) => {
      const [x, y] = [
        col * cellWidth + (n % cellWidth),
        row * cellHeight + Math.floor(n / cellWidth),
      ];
      return pixels[y * width + x] ?? 0;
    });
}

function ink(cell: Uint32Array, background: number): number {
  return cell.filter((pixel) => pixel !== background).length;
}

describe('a picture', () => {
  const pictures = new Pictures(systemClock);
  afterAll(() => pictures.close());

  test('[SC17] is a PNG of the cells and their margin, the same bytes each time', async () => {
    const view = viewOf('\x1b[41m \x1b[0m ok');
    const first = await pictures.png(view);
    expect([first.width, first.height]).toEqual([20 * cellWidth + 20, 4 * cellHeight + 20]);
    const { width, height, frames } = decodePng(first.png);
    expect([width, height]).toEqual([first.width, first.height]);
    const [frame] = frames;
    expect(frame?.pixels[0]).toBe(darkTheme.background);
    expect(frame?.pixels[12 * width + 12]).toBe(darkTheme.palette[1]);
    expect((await pictures.png(view)).png).toEqual(first.png);
    const large = await pictures.png(view, { scale: 2, theme: 'light', padding: 0 });
    expect(decodePng(large.png).frames[0]?.pixels[large.width * 5 + large.width - 5]).toBe(
      lightTheme.background,
    );
    expect(large.width).toBe(Math.round(cellWidth * 2) * 20);
  });

  test('[SC17] shows every printable character of ASCII, down to the underscore, in every face', () => {
    const plain = Array.from({ length: 94 }, (_, n) => String.fromCharCode(0x21 + n));
    for (const [bold, italic] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const)
      for (const character of plain) {
        const strongest = Math.max(...glyphs.glyph(character, 1, bold, italic).alpha);
        expect([character, strongest > 96]).toEqual([character, true]);
      }
  });

  test('[SC17] with more colours than a palette holds is exact all the same', async () => {
    const text = Array.from(
      { length: 80 },
      (_, n) => `\x1b[38;2;${n * 3};${255 - n};${n};48;2;0;${n};90mW`,
    ).join('');
    const snapshot = snapshotOf(text);
    const painter = new Painter(glyphs, {
      theme: darkTheme,
      showCursor: true,
      padding: 10,
      shades: 24,
    });
    const { pixels } = painter.paint(snapshot);
    expect(new Set(pixels).size).toBeGreaterThan(256);
    expect(decodePng((await pictures.png(viewOf(text))).png).frames[0]?.pixels).toEqual(pixels);
  });

  test('[SC17] refuses a scale, theme or margin that there is not', async () => {
    const view = viewOf('');
    for (const options of [
      { scale: 0 },
      { scale: 9 },
      { scale: 1.5 },
      { theme: 'pink' },
      { theme: 'toString' },
      { padding: -1 },
    ])
      await expect(pictures.png(view, options)).rejects.toMatchObject({
        code: 'invalid_input',
      });
  });

  test('[SC25] of a large screen is made elsewhere: the screen is handed over, and comes out the same', async () => {
    const text = Array.from(
      { length: 300 },
      (_, n) => `\x1b[${31 + (n % 7)}mrow ${n} e\u0301 漢`,
    ).join('\r\n');
    const wide = { cols: 400, rows: 120 };
    const shown = snapshotOf(text, wide);
    const made: readonly [string, unknown, (view: View) => Promise<unknown>][] = [
      ['svg', renderSvg(shown), async (view) => String(await pictures.page(view, 'svg'))],
      ['html', renderHtml(shown), async (view) => String(await pictures.page(view, 'html'))],
      ['repaint', repaint(shown), (view) => pictures.repaint(view)],
      [
        'text',
        visibleLines(shown).join('\n'),
        async (view) => textShown(await pictures.text(view)),
      ],
      [
        'structured',
        structuredSnapshot('x', shown, { scrollback: true, cells: true }),
        async (view) => {
          const include = { scrollback: true, cells: true };
          return JSON.parse(String(await pictures.structured(view, { sessionId: 'x', include })));
        },
      ],
    ];
    for (const [kind, expected, make] of made) {
      const view = viewOf(text, wide);
      expect([kind, await make(view)]).toEqual([kind, expected]);
      expect([kind, view.look.data.length]).toEqual([kind, 0]);
    }
  });

  test('[SC18] bold, italic, dim, inverse, hidden and lines each look different from plain', () => {
    const plain = paint('word')(0, 0);
    const looks = [1, 2, 3, 4, '4:2', '4:3', '4:4', '4:5', 7, 8, 9, 53, 31, 41].map((code) =>
      paint(`\x1b[${code}mword`)(0, 0).join(),
    );
    expect(new Set([plain.join(), ...looks]).size).toBe(looks.length + 1);
    expect(ink(paint('\x1b[8mword')(0, 0), darkTheme.background)).toBe(0);
    // Bold is really heavier, not the same face in another colour.
    expect(ink(paint('\x1b[1mM')(0, 0), darkTheme.background)).toBeGreaterThan(
      ink(paint('M')(0, 0), darkTheme.background),
    );
  });

  test('[SC18] both themes keep text legible in every colour of the sixteen but the ground itself', () => {
    const luminance = (rgb: number): number =>
      [16, 8, 0].reduce((total, shift, n) => {
        const part = ((rgb >> shift) & 0xff) / 255;
        const linear = part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        return total + linear * ([0.2126, 0.7152, 0.0722][n] ?? 0);
      }, 0);
    const contrast = (a: number, b: number): number => {
      const [light = 0, dark = 0] = [luminance(a), luminance(b)].toSorted((x, y) => y - x);
      return (light + 0.05) / (dark + 0.05);
    };
    for (const theme of Object.values(themes)) {
      expect(contrast(theme.foreground, theme.background)).toBeGreaterThan(7);
      for (const rgb of theme.palette.slice(1, 7))
        expect(contrast(rgb, theme.background)).toBeGreaterThan(4);
    }
  });

  test('[SC19] lines meet at the edges of their cells, in every kind of box', () => {
    for (const [top, side] of [
      ['┌─┐', '│'],
      ['┏━┓', '┃'],
      ['╔═╗', '║'],
      ['╭─╮', '│'],
    ] as const) {
      const cell = paint(`${top}\r\n${side} ${side}`);
      const right = (pixels: Uint32Array): number[] =>
        [...pixels].filter((_, n) => n % cellWidth === cellWidth - 1);
      const left = (pixels: Uint32Array): number[] =>
        [...pixels].filter((_, n) => n % cellWidth === 0);
      const marked = (pixels: readonly number[]): boolean[] =>
        pixels.map((pixel) => pixel !== darkTheme.background);
      expect(marked(right(cell(0, 0)))).toEqual(marked(left(cell(1, 0))));
      expect(marked(right(cell(1, 0)))).toEqual(marked(left(cell(2, 0))));
      expect(marked(left(cell(1, 0)))).toContain(true);
      const bottom = Array.from(cell(0, 0).slice(-cellWidth));
      expect(marked(bottom)).toEqual(marked(Array.from(cell(0, 1).slice(0, cellWidth))));
      expect(marked(bottom)).toContain(true);
    }
  });

  test('[SC19] every character of lines, blocks, braille and sextants is drawn by rule, each its own way', () => {
    const ranges = [
      [0x2500, 0x257f],
      [0x2580, 0x259f],
      [0x2801, 0x28ff],
      [0x1fb00, 0x1fb3b],
      [0xe0b0, 0xe0bd],
    ] as const;
    for (const [from, to] of ranges) {
      const seen = new Map<string, number>();
      for (let code = from; code <= to; code += 1) {
        const { alpha } = glyphs.glyph(String.fromCodePoint(code), 1, false, false);
        expect([code.toString(16), alpha.some((value) => value > 0)]).toEqual([
          code.toString(16),
          true,
        ]);
        seen.set(alpha.join(), code);
      }
      // Few pixels: some dashes of different number fall together, and so do two pairs of powerline strokes.
      expect(seen.size).toBeGreaterThan((to - from + 1) * 0.9);
    }
    expect([...glyphs.glyph('█', 1, false, false).alpha].every((value) => value === 255)).toBe(
      true,
    );
  });

  test('[SC19] a wide character fills two cells, one without a glyph is an empty box', () => {
    const cell = paint('漢');
    expect(ink(cell(0, 0), darkTheme.background)).toBeGreaterThan(0);
    expect(ink(cell(1, 0), darkTheme.background)).toBeGreaterThan(0);
    expect(ink(cell(2, 0), darkTheme.background)).toBe(0);
  });
});

describe('emoji', () => {
  test('[SC61] are drawn from the bundled face, two cells wide, whatever fonts the machine has', () => {
    const bare = new Glyphs(1, new MachineFonts([]));
    const shapes = ['✅', '❌', '🚀', '🎉', '🔥', '😀', '👍', '🔴', '🟢'].map((emoji) => {
      const upright = bare.glyph(emoji, 2, false, false);
      expect(bare.glyph(emoji, 2, true, true).alpha).toEqual(upright.alpha);
      return Buffer.from(upright.alpha).toString('latin1');
    });
    expect(new Set(shapes).size).toBe(shapes.length);
    expect([...bare.missing]).toEqual([]);
    bare.glyph('漢', 2, false, false);
    expect([...bare.missing]).toEqual(['漢']);
  });
});

describe('a character that no font has', () => {
  test('[SC31] is reported with the picture', async () => {
    const pictures = new Pictures(systemClock);
    try {
      const nowhere = '\u{10fffd}';
      // The second time it comes from what was drawn before.
      for (let times = 0; times < 2; times += 1)
        expect((await pictures.png(viewOf(`a${nowhere}b${nowhere}`))).missing).toEqual([nowhere]);
      expect((await pictures.png(viewOf('only a-z'))).missing).toEqual([]);
    } finally {
      await pictures.close();
    }
  });
});

describe('markup', () => {
  const hostile =
    '<script>alert(1)</script>&"\'\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07\x1b]2;</title><script>\x07';

  test('[SC20] what a program printed stays text, in SVG and in HTML', () => {
    const snapshot = snapshotOf(hostile, { cols: 80, rows: 3 });
    for (const markup of [renderSvg(snapshot), renderHtml(snapshot)]) {
      expect(markup).not.toMatch(/<script|javascript:|\son\w+=/i);
      expect(markup).toContain('&#60;script&#62;');
    }
    expect(renderHtml(snapshot)).toContain("default-src 'none'");
    const linked = renderHtml(
      snapshotOf('\x1b]8;;https://example.org/?a=1&b=2\x07here\x1b]8;;\x07'),
    );
    expect(linked).toContain('href="https://example.org/?a=1&#38;b=2"');
    expect(linked).toContain('rel="noopener noreferrer nofollow"');
  });

  test('[SC20] HTML shows the same lines, and scrollback when it is there', () => {
    const snapshot = snapshotOf('one\r\ntwo\r\nthree\r\nfour\r\nfive \x1b[1mbold\x1b[0m 漢');
    const text = renderHtml(snapshot, { showCursor: false })
      .replace(/[^]*<pre>\n/, '')
      .replace(/\n<\/pre>[^]*/, '')
      .replace(/<[^>]+>/g, '');
    expect(text.split('\n').map((line) => line.trimEnd())).toEqual([
      'one',
      'two',
      'three',
      'four',
      'five bold 漢',
    ]);
  });
});

describe('a recording', () => {
  const tape = new Tape(
    [
      '$ ',
      'l',
      's',
      '\r\n',
      '\x1b[34mdir\x1b[0m file\r\n',
      { cols: 30, rows: 5 },
      '$ \x1b[1;32mdone\x1b[0m',
      '\x1b[2J\x1b[Hend',
    ],
    200_000,
  );

  async function cast(options: Partial<AsciicastOptions>, source = tape): Promise<unknown[]> {
    let text = '';
    for await (const lines of asciicast(source, { version: 2, size, ...options })) text += lines;
    return text
      .trimEnd()
      .split('\n')
      .map((line): unknown => JSON.parse(line));
  }

  test('[SC21] as asciicast 2 has absolute times, as 3 intervals and the exit', async () => {
    const exit: ProcessEvent = {
      seq: 9,
      offset: 0,
      atUs: 2_000_000,
      wallMs: 0,
      kind: 'exited',
      body: { outcome: { kind: 'exit', code: 3 } },
    };
    const ended = {
      async *read(after: number, upTo?: number) {
        yield* tape.read(after, upTo);
        yield [exit];
      },
    } as unknown as Tape;
    const [head2, ...events2] = await cast(
      { env: { TERM: 'xterm' }, timestamp: 5, title: 't' },
      ended,
    );
    expect(head2).toEqual({
      version: 2,
      width: 20,
      height: 4,
      timestamp: 5,
      title: 't',
      env: { TERM: 'xterm' },
    });
    expect(events2[0]).toEqual([0, 'o', '$ ']);
    expect(events2[5]).toEqual([1, 'r', '30x5']);
    expect(events2).toHaveLength(8);
    const [head3, ...events3] = await cast({ version: 3, env: { TERM: 'xterm' } }, ended);
    expect(head3).toEqual({
      version: 3,
      term: { cols: 20, rows: 4, type: 'xterm' },
      env: { TERM: 'xterm' },
    });
    expect(events3[1]).toEqual([0.2, 'o', 'l']);
    expect(events3.at(-1)).toEqual([0.4, 'x', '3']);
  });

  test('[SC21] can be faster, with shorter pauses, and only a part, which then begins with what was shown', async () => {
    const times = async (options: Partial<AsciicastOptions>): Promise<number> => {
      const all = await cast(options);
      return (all.at(-1) as [number])[0];
    };
    expect(await times({})).toBe(1.4);
    expect(await times({ speed: 2 })).toBe(0.7);
    expect(await times({ idleLimitMs: 50 })).toBe(0.35);
    const before = snapshotOf('$ ls\r\n\x1b[34mdir\x1b[0m file');
    const [, first, second] = await cast({ from: 7, to: 7, before: repaint(before) });
    const painted = snapshotOf((first as [number, string, string])[2]);
    expect(visibleLines(painted)).toEqual(visibleLines(before));
    expect((second as [number, string, string])[2]).toContain('done');
  });

  test('[SC21] splits no character, and holds nothing that was typed unless asked', async () => {
    const bytes = Buffer.from('漢字');
    const split = new Tape([bytes.subarray(0, 2), bytes.subarray(2, 4), bytes.subarray(4)]);
    split.events.push({
      seq: 4,
      offset: 6,
      atUs: 50_000,
      wallMs: 0,
      kind: 'input',
      body: { bytes: 6, data: Buffer.from('secret').toString('base64') },
    });
    const events = (await cast({}, split)).slice(1) as [number, string, string][];
    expect(events.map(([, code, data]) => [code, data])).toEqual([
      ['o', '漢'],
      ['o', '字'],
    ]);
    expect(JSON.stringify(await cast({ includeInput: true }, split))).toContain('secret');
  });

  test('[SC22] as GIF and as APNG shows the screen at its times, all frames of one size', async () => {
    const progress: number[] = [];
    const options = { size, onProgress: (done: number) => progress.push(done), padding: 0 };
    const apng = await record(tape, { ...options, format: 'apng' }, systemClock);
    const gif = await record(tape, { ...options, format: 'gif' }, systemClock);
    expect(progress.at(-1)).toBe(1);
    const painter = new Painter(glyphs, {
      theme: darkTheme,
      showCursor: true,
      padding: 0,
      shades: 12,
    });
    const last = new Emulator(size.cols, size.rows, 0);
    for (const event of tape.events) {
      if (event.kind === 'output') last.feed(event.data);
      if (event.kind === 'resize') last.resize(event.body.cols, event.body.rows);
    }
    const expected = painter.paint(toSnapshot(last.look(0), 1, []), 30, 5);
    for (const [decoded, made] of [
      [decodePng(apng.bytes), apng],
      [decodeGif(gif.bytes), gif],
    ] as const) {
      expect([decoded.width, decoded.height]).toEqual([30 * cellWidth, 5 * cellHeight]);
      expect(decoded.frames.at(-1)?.pixels).toEqual(expected.pixels);
      expect(decoded.frames).toHaveLength(made.frames);
      // 1.4 s of recording, and the last frame stays one second more.
      const total = decoded.frames.reduce((total, { delayMs }) => total + delayMs, 0);
      expect(Math.abs(total - 2400)).toBeLessThan(60);
    }
    const part = await record(tape, { ...options, format: 'apng', from: 7, to: 7 }, systemClock);
    expect(part.frames).toBe(1);
  });

  test('[SC22] shows no more frames than asked, however much is printed, and never a half-drawn update', async () => {
    const busy = new Tape(
      Array.from({ length: 500 }, (_, n) => `\r${n}`),
      1000,
    );
    const { frames } = await record(busy, { format: 'apng', size, fps: 10 }, systemClock);
    expect(frames).toBeLessThanOrEqual(7);
    const synced = new Tape(
      ['\x1b[?2026h\x1b[2Jhalf', 'way', '\x1b[H\x1b[2Kwhole\x1b[?2026l'],
      1_000_000,
    );
    const { bytes } = await record(synced, { format: 'apng', size, padding: 0 }, systemClock);
    expect(decodePng(bytes).frames).toHaveLength(1);
  });

  test('[SC22] can be given up, and says what is missing for video', async () => {
    const control = new AbortController();
    control.abort();
    await expect(
      record(tape, { format: 'gif', size, signal: control.signal }, systemClock),
    ).rejects.toMatchObject({ code: 'aborted' });
    const video = record(tape, { format: 'webm', size }, systemClock);
    const made = await video.catch((error: unknown) => error);
    // Where ffmpeg is installed it is a WebM file: the magic number of its container.
    if ('bytes' in (made as object))
      expect((made as { bytes: Buffer }).bytes.readUInt32BE(0)).toBe(0x1a45dfa3);
    else expect(made).toMatchObject({ code: 'unsupported' });
  });

  test('[SC22] stores only what changed', () => {
    const picture = { width: 10, height: 10, pixels: new Uint32Array(100) };
    const other = { ...picture, pixels: Uint32Array.from(picture.pixels) };
    expect(difference(picture, other)).toBeUndefined();
    other.pixels[34] = 1;
    other.pixels[57] = 1;
    expect(difference(picture, other)).toEqual({ left: 4, top: 3, width: 4, height: 3 });
  });

  test('[SC23] repainting brings an empty terminal to the same screen', () => {
    const text =
      '\x1b[?1049h\x1b[1;38;5;200;48;2;1;2;3mab\x1b[0m\r\n 漢\x1b[4:3;58;5;9mcurly\x1b[0m\x1b]8;;https://a.b\x07l\x1b]8;;\x07 x\x1b[2;7H\x1b[?25l\x1b[?1h\x1b[?2004h\x1b=\x1b[?1002h\x1b[?1006h\x1b[?1004h';
    const before = snapshotOf(text);
    expect(snapshotOf(repaint(before))).toEqual(before);
  });

  test('[SC30] repainting brings the screen behind a full-screen program, too', async () => {
    const shell = 'one\r\n\x1b[31mtwo\x1b[0m 漢\r\nthree\r\nfour\r\n$ less F';
    const look = lookAt(`${shell}\x1b[?1049h\x1b[Hits file`, size, true);
    const painted = repaint(toSnapshot(look, 1, []));
    expect(visibleLines(snapshotOf(painted))[0]).toBe('its file');
    const left = snapshotOf(`${painted}\x1b[?1049l`);
    expect({ ...left, scrollback: [], scrollbackLines: 0 }).toEqual({
      ...snapshotOf(shell),
      scrollback: [],
      scrollbackLines: 0,
    });
    const pictures = new Pictures(systemClock);
    try {
      expect(await pictures.repaint({ look, seq: 1, skipped: [] })).toBe(painted);
    } finally {
      await pictures.close();
    }
  });
});
