// Searches with regular expressions: the worker, its budget, and that nobody else pays for a slow pattern.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import { sized } from '../../../test/support/slow.ts';
import { systemClock } from '../../base/clock.ts';
import type { Clock } from '../../base/clock.ts';
import type { ByteSource } from './byte-source.ts';
import { Matcher } from './matcher.ts';
import type { SearchResult } from '../../protocol/views.ts';
import type { SearchQuery } from './search-query.ts';

let matcher = new Matcher({ clock: systemClock });

beforeEach(() => {
  matcher = new Matcher({ clock: systemClock });
});
afterEach(async () => {
  await matcher.close();
});

function sourceOf(output: string | Buffer): ByteSource {
  const all = Buffer.from(output);
  return {
    start: 0,
    end: all.length,
    read(offset, maxBytes) {
      const bytes = all.subarray(offset, offset + maxBytes);
      return Promise.resolve(bytes.length > 0 ? { offset, bytes } : undefined);
    },
  };
}

/** `size` bytes, made while they are read: what lies at an offset is given by `fill`. */
function madeOf(size: number, fill: (offset: number, bytes: Buffer) => void): ByteSource {
  return {
    start: 0,
    end: size,
    read(offset, maxBytes) {
      const bytes = Buffer.alloc(Math.min(maxBytes, size - offset));
      fill(offset, bytes);
      return Promise.resolve(bytes.length > 0 ? { offset, bytes } : undefined);
    },
  };
}

function grep(
  output: string | Buffer | ByteSource,
  pattern: string,
  query: Partial<SearchQuery> = {},
): Promise<SearchResult> {
  const source = typeof output === 'string' || Buffer.isBuffer(output) ? sourceOf(output) : output;
  return matcher.search(source, { kind: 'regex', ...query, pattern });
}

function matches(result: SearchResult): string[] {
  return result.hits.map((hit) => hit.match);
}

function failureOf(search: Promise<unknown>): Promise<unknown> {
  return search.then(
    () => 'no failure',
    (reason: unknown) => reason,
  );
}

/** Each needs exponential, or hopelessly polynomial, time for its line. */
const catastrophic: readonly (readonly [pattern: string, line: string])[] = [
  ['(a+)+$', `${'a'.repeat(60)}!`],
  ['(a|aa)+$', `${'a'.repeat(90)}!`],
  ['(a|a)*$', `${'a'.repeat(60)}!`],
  ['(.*a){20}$', `${'a'.repeat(120)}!`],
  ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'.repeat(80)],
  ['(\\w+\\s?)*$', `${'word '.repeat(30)}!`],
  ['([a-zA-Z0-9]+)*@', 'a'.repeat(70)],
  ['^(\\d+)*x$', '1'.repeat(70)],
  ['(x+x+)+y', 'x'.repeat(70)],
  ['\\s+\\s+\\s+\\s+$', `${' '.repeat(9000)}!`],
];

describe('expressions', () => {
  test('[S1] an expression is matched line by line, with its first match in each', async () => {
    const result = await grep('id=1 id=2\r\nnone\nid=345\n', 'id=\\d+$', { context: 1 });
    expect(result.hits).toEqual([
      { offset: 0, endOffset: 10, line: 'id=1 id=2', match: 'id=2', before: [], after: ['none'] },
      { offset: 16, endOffset: 22, line: 'id=345', match: 'id=345', before: ['none'], after: [] },
    ]);
    expect(matches(await grep('a\n\nb\n', '^$'))).toEqual(['']);
    expect(matches(await grep('Größe 😀!', 'GRÖSSE|größe .!', { ignoreCase: true }))).toEqual([
      'Größe 😀!',
    ]);
    expect(matches(await grep('a-b', 'a\\-b'))).toEqual(['a-b']);
    expect(matches(await grep('\x1b[31mer\x1b[0mror 7', '^error \\d$'))).toEqual(['error 7']);
  });

  test('[S6] in a long line ^ and $ mean the line, not its pieces', async () => {
    const filler = 'xy'.repeat(50_000);
    expect((await grep(`s${filler}\n`, '^y')).hits).toEqual([]);
    expect((await grep(`${filler}\n`, '[xy]{4}$')).hits).toMatchObject([
      { offset: 0, endOffset: 100_000 },
    ]);
    expect((await grep(`${filler}z\n`, '[xy]{4}$')).hits).toEqual([]);
    expect((await grep(`${filler}z\n`, 'x(?!y)')).hits).toEqual([]);
    expect(matches(await grep(`${filler}z\n`, '.z$'))).toEqual(['yz']);
    expect((await grep(`${filler}z\n`, '.*z')).hits.length).toBe(1);
    expect(matches(await grep(`start${filler}\n`, '^start.*')).length).toBe(1);
  });

  test('[S9] an expression is found across growths, and each line is reported once', async () => {
    let output = '';
    const seen: number[] = [];
    let resume: SearchResult['resume'] | undefined;
    for (const part of ['list', 'ening on por', 't 80', '80\nnothing\n', 'listening on port 1\n']) {
      output += part;
      const result = await grep(output, 'port \\d+', { limit: 1, ...(resume && { resume }) });
      seen.push(...result.hits.map((hit) => hit.offset));
      resume = result.resume;
    }
    expect(seen).toEqual([0, 31]);
  });

  test('[S10] an expression that is not one is refused with the reason, without a worker', async () => {
    await expect(grep('x', '(')).rejects.toMatchObject({
      code: 'pattern_invalid',
      message: /Unterminated group/,
    });
    await expect(grep('x', 'a'.repeat(4097))).rejects.toMatchObject({ code: 'pattern_invalid' });
    expect(matcher.active).toBe(false);
  });

  test('[S11] ".*" at the beginning costs no more than without it', async () => {
    const line = `${'{"some":"json"} '.repeat(128)}\n`;
    expect((await grep(line.repeat(500), '.*error')).hits).toEqual([]);
    expect(matches(await grep(`${line.repeat(500)}an error\n`, '.*error'))).toEqual(['an error']);
    expect(matches(await grep('left\rright error', '.+error'))).toEqual(['right error']);
    expect(matches(await grep('xbb', '.*?a|b'))).toEqual(['b']);
  });
});

describe('slow patterns', () => {
  // Two at a time: the second runs in a worker apart, and on a busy machine each takes many times its processor time.
  const tried = catastrophic.slice(0, sized(4, catastrophic.length));
  const pairs = tried.flatMap((_, n) => (n % 2 === 0 ? [tried.slice(n, n + 2)] : []));
  test.each(pairs)(
    '[S11] a pattern that takes too long fails alone, and holds up neither the loop nor another search: %s',
    async (...pair) => {
      for (const [pattern, line] of pair) {
        const slow = failureOf(grep(line, pattern));
        const others = [
          grep('one\ntwo\n', 't.o'),
          grep('three\n', 'th', { kind: 'text' }),
          grep(`${'x'.repeat(99)}\n`.repeat(6000), 'y+'),
        ];
        const results = await Promise.all(others);
        expect(results.map((result) => result.hits.length)).toEqual([1, 1, 0]);
        expect(await slow).toMatchObject({ code: 'pattern_too_slow', details: { pattern } });
      }
    },
  );

  test('[S11] searches in turn: a long one does not make a short one wait for its end', async () => {
    const order: string[] = [];
    const long = grep(`${'x'.repeat(99)}\n`.repeat(100_000), 'y+').then(() => order.push('long'));
    const short = grep('y', 'y+').then(() => order.push('short'));
    await Promise.all([long, short]);
    expect(order).toEqual(['short', 'long']);
  });

  test('[S11] a budget counts from when the worker begins, not from when it is asked', async () => {
    // Starting the thread takes about as long as this budget.
    matcher = new Matcher({ clock: systemClock, blockBudgetMs: 100 });
    expect(matches(await grep('abc', 'b'))).toEqual(['b']);
  });

  test('[H63] owners are served in turn: slow patterns of one do not come before what another asks later', async () => {
    matcher = new Matcher({ clock: systemClock, blockBudgetMs: 100 });
    const slow = { kind: 'regex', pattern: '(a+)+$' } as const;
    const ended: string[] = [];
    const bobs = Array.from({ length: 4 }, () =>
      matcher
        .search(sourceOf(`${'a'.repeat(60)}b`), slow, { owner: 'bob' })
        .catch((error: { code: string }) => ended.push(error.code)),
    );
    await matcher.search(sourceOf('y'), { kind: 'regex', pattern: 'y+' }, { owner: 'alice' });
    expect(ended.length).toBeLessThan(4);
    await Promise.all(bobs);
    expect(ended).toEqual(Array(4).fill('pattern_too_slow'));
  });

  test('[H92] an owner gets answers while a pattern of another runs, and while more of them wait', async () => {
    // Longer than the test may take: nobody can wait for the end of the budget.
    matcher = new Matcher({ clock: systemClock, blockBudgetMs: 600_000 });
    const slow = { kind: 'regex', pattern: '(a+)+$' } as const;
    const given = new AbortController();
    const bobs = Array.from({ length: 4 }, (_, n) =>
      failureOf(
        matcher.search(sourceOf(`${'a'.repeat(60)}b`), slow, {
          owner: 'bob',
          ...(n === 0 && { signal: given.signal }),
        }),
      ),
    );
    // Also one that its caller gave up keeps its owner apart.
    await new Promise((resolve) => void setImmediate(resolve));
    given.abort();
    for (let n = 0; n < 3; n += 1) {
      const search = matcher.search(
        sourceOf('yy'),
        { kind: 'regex', pattern: 'y+' },
        { owner: 'alice' },
      );
      expect(matches(await search)).toEqual(['yy']);
    }
    expect(await bobs[0]).toMatchObject({ code: 'aborted' });
    await matcher.close();
    expect(await Promise.all(bobs.slice(1))).toMatchObject(
      Array.from({ length: 3 }, () => ({ code: 'host_closed' })),
    );
  });

  test('[H63] an owner whose patterns were too slow too often is refused for a while, and nobody else', async () => {
    const clock = new FakeClock();
    matcher = new Matcher({ clock, blockBudgetMs: 100 });
    const slow = { kind: 'regex', pattern: '(a+)+$' } as const;
    const search = (owner: string, text: string): Promise<unknown> =>
      matcher.search(sourceOf(text), slow, { owner, bounded: true });
    const codes: unknown[] = [];
    for (let n = 0; n < 9; n += 1)
      codes.push(
        await search('bob', `${'a'.repeat(60)}b`).catch((error: { code: string }) => error.code),
      );
    expect(codes).toEqual([...Array<string>(8).fill('pattern_too_slow'), 'limit_reached']);
    await search('alice', 'a');
    clock.advance(10_001);
    await search('bob', 'a');
  });
});

describe('large outputs', () => {
  test('[S12] 20 MB are searched without holding up the event loop', async () => {
    const line = Buffer.from(`${'0123456789'.repeat(7)} caf\u00e9 \x1b[32mok\x1b[0m\n`);
    const size = line.length * Math.ceil(20_000_000 / line.length);
    const source = madeOf(size, (offset, bytes) => {
      for (let at = -(offset % line.length); at < bytes.length; at += line.length) {
        line.copy(bytes, Math.max(0, at), Math.max(0, -at));
      }
    });
    for (const query of [
      { kind: 'text', pattern: 'absent' },
      { kind: 'text', pattern: 'ABSENT', ignoreCase: true },
      { kind: 'regex', pattern: 'absent \\d+' },
    ] as const) {
      // Others have their turns meanwhile: plain text is matched in this thread, a block at a time.
      let turns = 0;
      const timer = setInterval(() => (turns += 1), 1);
      expect(await matcher.search(source, query)).toMatchObject({
        hits: [],
        searchedTo: size,
        truncated: false,
      });
      clearInterval(timer);
      expect(turns).toBeGreaterThan(3);
    }
    const many = await grep(source, 'caf\u00e9 ok$', { limit: 1000, context: 1 });
    expect(many.hits.length).toBe(1000);
    expect(many).toMatchObject({ truncated: true, searchedTo: 1000 * line.length });
  });

  test('[S12] a line of many MB is searched to its end', async () => {
    const size = sized(30_000_000, 100_000_000);
    const source = madeOf(size, (offset, bytes) => {
      bytes.fill('x');
      if (offset + bytes.length === size) bytes.write('NEEDLE', bytes.length - 100);
    });
    const result = await grep(source, 'NE+DLE');
    expect(result.hits).toMatchObject([{ offset: 0, endOffset: size, match: 'NEEDLE' }]);
  });
});

describe('the worker', () => {
  test('[S13] a search that is given up ends at once, queued or running, and the others go on', async () => {
    const [pattern, line] = catastrophic[0] ?? ['', ''];
    const running = new AbortController();
    const queued = new AbortController();
    const early = new AbortController();
    const x = { kind: 'regex', pattern: 'x' } as const;
    const slow = failureOf(matcher.search(sourceOf(line), { kind: 'regex', pattern }, running));
    const waiting = failureOf(matcher.search(sourceOf('x'), x, queued));
    const unread = failureOf(matcher.search(sourceOf('x'), x, early));
    const other = grep('abc', 'b');
    early.abort();
    // One turn, so that the first is with the worker and the others stand in the queue.
    await new Promise((resolve) => void setImmediate(resolve));
    queued.abort();
    expect(await Promise.all([waiting, unread])).toMatchObject([
      { code: 'aborted' },
      { code: 'aborted' },
    ]);
    running.abort();
    expect(await slow).toMatchObject({ code: 'aborted' });
    expect(matches(await other)).toEqual(['b']);
  });

  test('[S13] closing ends the thread and fails what needs it', async () => {
    const [pattern, line] = catastrophic[0] ?? ['', ''];
    const slow = failureOf(grep(line, pattern));
    const queued = failureOf(grep('x', 'x'));
    // One turn, so that both stand in the queue.
    await new Promise((resolve) => void setImmediate(resolve));
    await matcher.close();
    expect(matcher.active).toBe(false);
    expect(await Promise.all([slow, queued])).toMatchObject([
      { code: 'host_closed' },
      { code: 'host_closed' },
    ]);
    await expect(grep('x', 'x')).rejects.toMatchObject({ code: 'host_closed' });
    await expect(grep('x', 'x', { kind: 'text' })).rejects.toMatchObject({ code: 'host_closed' });
  });

  test('[S13] the thread starts with the first expression and leaves when it has been idle', async () => {
    const timers = new Set<{ ms: number; callback: () => void }>();
    const clock: Clock = {
      ...systemClock,
      after(ms, callback) {
        const timer = { ms, callback };
        timers.add(timer);
        return () => timers.delete(timer);
      },
    };
    matcher = new Matcher({ clock });
    await grep('x', 'x', { kind: 'text' });
    expect(matcher.active).toBe(false);
    await grep('x', 'x');
    await grep('x', 'y');
    expect(matcher.active).toBe(true);
    expect([...timers].map((timer) => timer.ms)).toEqual([30_000]);
    for (const timer of timers) timer.callback();
    expect(matcher.active).toBe(false);
    expect(matches(await grep('again', 'a'))).toEqual(['a']);
  });
});
