// Screens in their worker: views of a journal that can be taken at any event, survive their worker, wait for what is asked
// and cost others nothing.
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bombs } from '../../../test/support/bombs.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { Tape } from '../../../test/support/screen-events.ts';
import type { Printed } from '../../../test/support/screen-events.ts';
import { systemClock } from '../../base/clock.ts';
import { FileCheckpoints, MemoryCheckpoints } from '../emulator/checkpoints.ts';
import { Emulator } from '../emulator/emulator.ts';
import { QueryWatch } from '../emulator/queries.ts';
import type { Screen } from './screen.ts';
import { toSnapshot } from './view.ts';
import { Screens } from './screens.ts';
import type { ScreenOptions } from './screens.ts';
import { screenHash, visibleLines } from './snapshot.ts';
import type { Snapshot } from './snapshot.ts';

const size = { cols: 40, rows: 10 } as const;
const EVENT_BYTES = 65_536;

let screens: Screens;
beforeEach(() => {
  screens = new Screens({ clock: systemClock });
});
afterEach(() => screens.close());

function open(tape: Tape, options: Partial<ScreenOptions> = {}, of = screens): Screen {
  return of.open({ size, source: tape, ...options });
}

/** What an emulator shows that is simply fed everything. */
function replayed(tape: Tape, upTo: number, scrollback = 0): Snapshot {
  const emulator = new Emulator(size.cols, size.rows, 5000);
  for (const event of tape.events.slice(0, upTo)) {
    if (event.kind === 'output') emulator.feed(event.data);
    if (event.kind === 'resize') emulator.resize(event.body.cols, event.body.rows);
  }
  return toSnapshot(emulator.look(scrollback), upTo, []);
}

function pieces(bytes: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / EVENT_BYTES) }, (_, n) =>
    bytes.subarray(n * EVENT_BYTES, (n + 1) * EVENT_BYTES),
  );
}

/** About `megabytes` of coloured lines. */
function manyLines(megabytes: number): Buffer[] {
  const line = (n: number): string => `\x1b[3${n % 8}mline ${n} ${'x'.repeat(n % 60)}\x1b[0m\r\n`;
  const text = Array.from({ length: 1000 }, (_, n) => line(n)).join('');
  return pieces(Buffer.from(text.repeat(Math.ceil((megabytes * 1e6) / text.length))));
}

describe('a screen', () => {
  test('[SC9] is the same fed, read from the journal, or mixed, and takes no event twice', async () => {
    const tape = new Tape(['one\r\n', 'two\r\n', { cols: 30, rows: 8 }, '\x1b[31mthree']);
    const expected = replayed(tape, 4);
    const read = open(tape);
    await read.advance();
    expect(await read.snapshot()).toEqual(expected);
    const fed = open(tape);
    await fed.feed(tape.events.slice(0, 2));
    await fed.feed(tape.events);
    expect(await fed.snapshot()).toEqual(expected);
    // What is missing before the first event that is fed comes from the journal.
    const late = open(tape);
    await late.feed(tape.events.slice(3));
    expect(await late.snapshot()).toEqual(expected);
    expect(late.seq).toBe(4);
  });

  test('[SC9] can be seen as it was behind any event', async () => {
    const printed: Printed[] = Array.from({ length: 40 }, (_, n) =>
      n === 20 ? { cols: 20, rows: 5 } : `\x1b[${n % 9};${n % 7}Hevent ${n}\r\n`,
    );
    const tape = new Tape(printed);
    const screen = open(tape);
    await screen.advance();
    for (let at = 0; at <= 40; at += 1)
      expect(await screen.snapshot({ at, scrollback: true })).toEqual(replayed(tape, at, 5000));
    expect(screen.seq).toBe(40);
    const ahead = open(tape);
    expect(await ahead.snapshot({ at: 25 })).toEqual(replayed(tape, 25));
  });

  test('[SC9] its hash is that of its lines without trailing spaces', async () => {
    const tape = new Tape(['ab  \r\n  cd']);
    const screen = open(tape);
    await screen.advance();
    const snapshot = await screen.snapshot();
    expect(snapshot.hash).toBe(screenHash(['ab', '  cd', '', '', '', '', '', '', '', '']));
    expect(visibleLines(snapshot)).toHaveLength(10);
  });

  test('[SC10] answers what live events ask, in order, and nothing that is replayed', async () => {
    const tape = new Tape(['\x1b[6n', 'ab\x1b[6n\x1b[5n']);
    const answers: string[] = [];
    const screen = open(tape, { reply: (bytes) => answers.push(bytes.toString()) });
    await screen.feed(tape.events.slice(0, 1), { live: true });
    await screen.feed([tape.print('\x1b[c')], { live: true });
    expect(answers).toEqual(['\x1b[1;1R', '\x1b[?1;2c']);
    await screen.snapshot({ at: 1 });
    await screen.retire();
    await screen.snapshot();
    const again = open(tape, { reply: (bytes) => answers.push(bytes.toString()) });
    await again.advance();
    await again.feed(tape.events);
    expect(answers).toHaveLength(2);
  });

  test('[SC11] a long journal is not replayed from its beginning', async () => {
    const tape = new Tape(manyLines(9));
    const checkpoints = new MemoryCheckpoints();
    const first = open(tape, { checkpoints });
    await first.advance();
    const last = tape.events.length;
    const read: number[] = [];
    const source = {
      read: (after: number, upTo?: number) => {
        read.push(after);
        return tape.read(after, upTo);
      },
    };
    const second = open(tape, { checkpoints, source });
    await second.advance();
    expect(read.every((after) => after > last / 3)).toBe(true);
    const seen = await second.snapshot({ scrollback: true });
    expect(seen.scrollback).toHaveLength(5000);
    // As text: comparing half a million values one by one takes seconds.
    expect(JSON.stringify(seen) === JSON.stringify(replayed(tape, last, 5000))).toBe(true);
    const at = last - 3;
    expect(await second.snapshot({ at, scrollback: 50 })).toEqual(replayed(tape, at, 50));
  });

  test('[SC11] a screen that nobody uses gives its memory back and returns as it was', async () => {
    const clock = new FakeClock();
    const own = new Screens({ clock, idleMs: 1000 });
    try {
      const tape = new Tape(['hello \x1b[1mworld']);
      const screen = open(tape, {}, own);
      await screen.advance();
      const before = await screen.snapshot();
      expect(screen.loaded).toBe(true);
      clock.advance(1500);
      await screen.retire();
      expect(screen.loaded).toBe(false);
      expect(await screen.snapshot()).toEqual(before);
    } finally {
      await own.close();
    }
  });

  test('[SC11] checkpoints in files are private, few, found by a later server, and harmless when damaged', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-screen-'));
    try {
      const inside = join(folder, 'a', 'b');
      const store = new FileCheckpoints(inside);
      expect(await store.nearest(100)).toBeUndefined();
      for (let seq = 1; seq <= 30; seq += 1) await store.save(seq, Uint8Array.of(seq));
      const files = readdirSync(inside);
      expect(files.length).toBeLessThanOrEqual(12);
      expect(statSync(inside).mode & 0o777).toBe(0o700);
      for (const file of files) expect(statSync(join(inside, file)).mode & 0o777).toBe(0o600);
      expect((await store.nearest(30))?.bytes).toEqual(Buffer.of(30));
      // As if the folder were removed between making it and writing into it.
      symlinkSync(join(folder, 'gone', 'x'), join(inside, '31.screen.new'));
      await store.save(31, Uint8Array.of(31));
      expect((await store.nearest(31))?.seq).toBe(30);
      const tape = new Tape(['one\r\n', 'two\r\n', 'three']);
      const kept = new FileCheckpoints(join(folder, 'kept'));
      const first = open(tape, { checkpoints: kept });
      await first.advance();
      await first.close();
      const [file = ''] = readdirSync(join(folder, 'kept'));
      truncateSync(join(folder, 'kept', file), 20);
      const second = open(tape, { checkpoints: kept });
      await second.advance();
      expect(await second.snapshot()).toEqual(replayed(tape, 3));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a bomb', () => {
  test('[SC12] of any kind stalls neither this thread nor another screen, and its own screen goes on', async () => {
    const quiet = new Tape();
    const other = open(quiet);
    await other.feed([quiet.print('ready\r\n')]);
    let survived = 0;
    for (const [name, make] of Object.entries(bombs)) {
      const tape = new Tape(['before\r\n', ...pieces(make())]);
      const screen = open(tape);
      const bytes = tape.events.reduce(
        (total, event) => total + (event.kind === 'output' ? event.data.length : 0),
        0,
      );
      const state = { over: false };
      const bombed = screen.advance().finally(() => {
        state.over = true;
      });
      do {
        await other.feed([quiet.print('.')]);
        await other.snapshot();
      } while (!state.over);
      await bombed;
      survived += 1;
      await screen.feed([tape.print('\x1b\\\x07\x18\x1b[!p\x1b[?1049l\x1b[2J\x1b[Hafter')]);
      const seen = await screen.snapshot();
      expect([name, visibleLines(seen)[0]]).toEqual([name, 'after']);
      expect(
        tape.events.reduce(
          (total, event) => total + (event.kind === 'output' ? event.data.length : 0),
          0,
        ),
      ).toBeGreaterThan(bytes);
      await screen.close();
    }
    expect(survived).toBeGreaterThanOrEqual(25);
  });

  test('[SC13] the guard does not know costs its event and the worker; every screen is there again, and it says so', async () => {
    const strict = new Screens({ clock: systemClock, budgetMs: 150 });
    try {
      const quiet = new Tape(['calm \x1b[32mgreen']);
      const other = open(quiet, {}, strict);
      await other.advance();
      const before = await other.snapshot();
      // Slow by its mere size: a wide screen of resets in one event.
      const tape = new Tape(['before ', Buffer.from('\x1bc\x1b[?1049h'.repeat(50_000)), 'after']);
      const screen = open(tape, { size: { cols: 1000, rows: 500 } }, strict);
      await screen.advance();
      const seen = await screen.snapshot();
      expect(visibleLines(seen)[0]).toBe('before after');
      expect(seen.skipped).toEqual([{ seq: 2, bytes: 500_000 }]);
      expect(strict.generation).toBeGreaterThan(0);
      expect(await other.snapshot()).toEqual(before);
      await screen.retire();
      expect(await screen.snapshot()).toEqual(seen);
    } finally {
      await strict.close();
    }
  });

  test('[TM91] that is none: much at once, which suddenly takes long, is taken in by smaller steps', async () => {
    const own = new Screens({ clock: systemClock });
    try {
      const quick = pieces(Buffer.from('quick\r\n'.repeat(200_000)));
      const slow = Buffer.from(`\x1b#8${'.'.repeat(60)}`.repeat(1000));
      const tape = new Tape([...quick, slow, '\x1b[2J\x1b[Hend']);
      const screen = open(tape, { size: { cols: 500, rows: 200 }, scrollback: 100 }, own);
      await screen.advance();
      const seen = await screen.snapshot();
      expect(visibleLines(seen)[0]).toBe('end');
      expect(seen.skipped).toEqual([]);
    } finally {
      await own.close();
    }
  });
});

describe('waiting on a screen', () => {
  async function waiting(
    ...printed: readonly Printed[]
  ): Promise<{ tape: Tape; screen: Screen; print: (text: Printed) => Promise<void> }> {
    const tape = new Tape(printed);
    const screen = open(tape);
    await screen.advance();
    return { tape, screen, print: (text) => screen.feed([tape.print(text)]) };
  }

  test('[SC14] for text or a pattern ends at once when it is there, else when it comes', async () => {
    const { screen, print } = await waiting('hello');
    expect(await screens.wait(screen, { text: 'ell' })).toMatchObject({
      matched: true,
      matchedText: 'ell',
    });
    const later = screens.wait(screen, { regex: 'w.r(l)d$' });
    await print('\r\nwo');
    await print('rld\x1b[K\x1b[J\x1b[?25l');
    expect(await screens.wait(screen, { text: 'zzz' }, { timeoutMs: 0 })).toMatchObject({
      matched: false,
      timedOut: true,
    });
    // "$" is the end of the screen, not of a line; the rest of it is empty lines.
    const multi = screens.wait(screen, { regex: 'hello\\nw.r(l)d' });
    expect(await multi).toMatchObject({ matched: true, matchedText: 'hello\nworld' });
    await print('\x1b[10;30H\x1b[2Jworld');
    expect(await later).toMatchObject({ matchedText: 'world' });
  });

  test('[SC14] until it is gone, until the cursor is there, until anything else is shown', async () => {
    const { screen, print } = await waiting('busy');
    const gone = screens.wait(screen, { text: 'busy', gone: true });
    const cursor = screens.wait(screen, { cursorRow: 2, cursorCol: 4 });
    const { hash } = await screen.snapshot();
    const changed = screens.wait(screen, { changedFrom: hash });
    await print('\x1b[1m');
    await print('\r\x1b[Kdone');
    expect((await gone).matched).toBe(true);
    expect((await changed).snapshot.hash).not.toBe(hash);
    await print('\x1b[3;5H');
    expect((await cursor).snapshot.cursor).toMatchObject({ row: 2, col: 4 });
  });

  test('[SC14] until it has been still for a while, counted anew by each change', async () => {
    const clock = new FakeClock();
    const own = new Screens({ clock });
    try {
      const tape = new Tape(['a']);
      const screen = open(tape, {}, own);
      await screen.advance();
      let done = false;
      const still = own.wait(screen, { stableMs: 100 }).then((result) => {
        done = true;
        return result;
      });
      await screen.snapshot();
      await screen.snapshot();
      clock.advance(80);
      await screen.feed([tape.print('b')]);
      // Two turns of the screen: the one in which it is looked at again has passed.
      await screen.snapshot();
      await screen.snapshot();
      clock.advance(80);
      await screen.snapshot();
      expect(done).toBe(false);
      clock.advance(30);
      expect((await still).snapshot.text).toMatch(/^ab\n/);
    } finally {
      await own.close();
    }
  });

  test('[SC14] counts only what is shown behind the given event', async () => {
    const { screen, print, tape } = await waiting('ready');
    const next = screens.wait(screen, { text: 'ready' }, { afterSeq: tape.events.length });
    await print('\r\nagain');
    expect((await next).snapshot.seq).toBe(2);
  });

  test('[SC15] in the stream finds what has scrolled away or is broken by the width of the screen', async () => {
    const { screen, print } = await waiting(`needle${'\r\n'.repeat(30)}`);
    expect((await screens.wait(screen, { text: 'needle' }, { timeoutMs: 0 })).matched).toBe(false);
    expect(
      (await screens.wait(screen, { text: 'needle', where: 'stream' }, { timeoutMs: 0 })).matched,
    ).toBe(true);
    const long = screens.wait(screen, { text: 'y'.repeat(60), where: 'stream' }, { afterSeq: 1 });
    await print(`${'y'.repeat(30)}\x1b[1m`);
    await print(`${'y'.repeat(30)}\r\n`);
    expect((await long).matched).toBe(true);
    const before = screens.wait(
      screen,
      { text: 'needle', where: 'stream' },
      { afterSeq: 1, timeoutMs: 0 },
    );
    expect((await before).matched).toBe(false);
  });

  test('[SC16] that runs out of time says what is shown and what came nearest', async () => {
    const clock = new FakeClock();
    const own = new Screens({ clock });
    try {
      const screen = open(new Tape(['loading\r\nbuild failed']), {}, own);
      await screen.advance();
      const result = own.wait(screen, { text: 'build finished' }, { timeoutMs: 500 });
      await screen.snapshot();
      clock.advance(500);
      expect(await result).toMatchObject({
        matched: false,
        timedOut: true,
        nearest: { row: 1, line: 'build failed', found: 'build f' },
        snapshot: { seq: 1 },
      });
    } finally {
      await own.close();
    }
  });

  test('[SC16] that is given up, or whose pattern is none or takes too long, fails and leaves nothing behind', async () => {
    const { screen } = await waiting(`${'a'.repeat(39)}!`);
    const control = new AbortController();
    const given = screens.wait(screen, { text: 'never' }, { signal: control.signal });
    control.abort();
    await expect(given).rejects.toMatchObject({ code: 'aborted' });
    await expect(screens.wait(screen, { regex: '(' })).rejects.toMatchObject({
      code: 'pattern_invalid',
    });
    await expect(screens.wait(screen, { regex: '^(a+)+$' })).rejects.toMatchObject({
      code: 'pattern_too_slow',
    });
    expect((await screens.wait(screen, { regex: 'a+!' })).matched).toBe(true);
  });

  test('[SC26] a slow pattern of one owner is not waited for by another', async () => {
    const tape = new Tape([`${'a'.repeat(39)}!`]);
    const [bob, alice] = ['bob', 'alice'].map((owner) => open(tape, { owner }));
    if (!bob || !alice) throw new Error('no screens');
    await Promise.all([bob.advance(), alice.advance()]);
    const slow = { regex: '^(a+)+$' };
    await expect(screens.wait(bob, slow)).rejects.toMatchObject({ code: 'pattern_too_slow' });
    // Bob's next ones stand in a line of their own: alice is answered while all of them are still tried.
    let tried = 0;
    const again = Array.from({ length: 8 }, () =>
      screens.wait(bob, slow).catch(() => {
        tried += 1;
      }),
    );
    expect((await screens.wait(alice, { regex: 'a+!' })).matched).toBe(true);
    expect(tried).toBeLessThan(again.length);
  });
});

describe('a watch for questions', () => {
  test('[SC10] notices every question, wherever it is cut, and little else', () => {
    for (const asked of [
      '\x1b[c',
      '\x1b[>c',
      '\x1b[6n',
      '\x1b[?6n',
      '\x1b]10;?\x07',
      '\x1b]11;?\x1b\\',
      '\x1b]4;1;?\x07',
      '\x1b[>0q',
      '\x1b[18t',
      '\x1b[?2004$p',
      '\x1bP$qm\x1b\\',
    ]) {
      const bytes = Buffer.from(`text${asked}text`);
      for (let cut = 0; cut <= bytes.length; cut += 1) {
        const watch = new QueryWatch();
        const noticed = [watch.asks(bytes.subarray(0, cut)), watch.asks(bytes.subarray(cut))];
        expect([asked, cut, noticed.includes(true)]).toEqual([asked, cut, true]);
      }
    }
    const calm = new QueryWatch();
    expect(calm.asks(Buffer.from('\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b[2J\x1b[H'))).toBe(
      false,
    );
  });
});
