// Searches for plain text, which need no worker: what is found, what is shown, where the next search goes on.
import * as fc from '../../../test/support/properties.ts';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import type { ByteSource } from './byte-source.ts';
import { foldCase } from './line-scan.ts';
import { Matcher } from './matcher.ts';
import type { SearchHit, SearchResult } from '../../protocol/views.ts';
import type { SearchQuery } from './search-query.ts';

const matcher = new Matcher({ clock: systemClock });

afterEach(() => {
  if (matcher.active) throw new Error('Plain text needs no worker.');
});

/** Output in memory: handed out in answers of at most `most` bytes, growing, with stretches that are gone. */
class MemorySource implements ByteSource {
  start = 0;
  end = 0;
  reads = 0;
  private readonly parts: { offset: number; bytes: Buffer }[] = [];
  private readonly most: number;

  constructor(first: Buffer | string = '', most = Infinity) {
    this.most = most;
    this.add(first);
  }

  add(bytes: Buffer | string): this {
    const added = Buffer.from(bytes);
    if (added.length > 0) this.parts.push({ offset: this.end, bytes: added });
    this.end += added.length;
    return this;
  }

  drop(bytes: number): this {
    this.end += bytes;
    return this;
  }

  read(offset: number, maxBytes: number): Promise<{ offset: number; bytes: Buffer } | undefined> {
    this.reads += 1;
    const part = this.parts.find((part) => part.offset + part.bytes.length > offset);
    if (part === undefined) return Promise.resolve(undefined);
    const at = Math.max(0, offset - part.offset);
    const bytes = part.bytes.subarray(at, at + Math.min(maxBytes, this.most));
    return Promise.resolve({ offset: part.offset + at, bytes });
  }
}

function find(
  output: Buffer | string | ByteSource,
  query: Partial<SearchQuery> & { pattern: string },
): Promise<SearchResult> {
  const source =
    typeof output === 'string' || Buffer.isBuffer(output) ? new MemorySource(output) : output;
  return matcher.search(source, { kind: 'text', ...query });
}

function offsets(result: SearchResult): number[] {
  return result.hits.map((hit) => hit.offset);
}

describe('hits', () => {
  test('[S1] a hit is a line: its place, its text, its match, the lines around it', async () => {
    const result = await find('one\r\ntwo fish\nthree\nfour', { pattern: 'fish', context: 2 });
    const hit: SearchHit = {
      offset: 5,
      endOffset: 13,
      line: 'two fish',
      match: 'fish',
      before: ['one'],
      after: ['three', 'four'],
    };
    expect(result).toEqual({
      hits: [hit],
      searchedFrom: 0,
      searchedTo: 24,
      resumeFrom: 20,
      resume: { offset: 20, lineStart: 20, reported: false },
      missedBytes: 0,
      truncated: false,
    });
  });

  test('[S1] a line is reported once, however often it matches', async () => {
    expect(offsets(await find('aa aa\nb\naa', { pattern: 'aa' }))).toEqual([0, 8]);
  });

  test('[C50] tells the number of a line when asked, behind lines of any length, and not behind what is missing', async () => {
    const numbers = async (source: ByteSource | string, more = {}): Promise<unknown[]> => {
      const found = await find(source, { pattern: 'hit', lineNumbers: true, ...more });
      return found.hits.map(({ lineNumber }) => lineNumber);
    };
    const long = 'x'.repeat(300_000);
    expect(
      await numbers(`hit\n\n${long}\nhit ${long} hit\r\n${long} hit\n${'\n'.repeat(300_000)}hit`),
    ).toEqual([1, 4, 5, 300_006]);
    expect(await numbers(new MemorySource('\nhit\n').drop(10).add('\nhit\n'))).toEqual([
      2,
      undefined,
    ]);
    expect(await numbers('\nhit', { from: 1 })).toEqual([undefined]);
    expect(await numbers('\nhit', { lineNumbers: false })).toEqual([undefined]);
  });

  test('[S1] what is found does not depend on how the bytes are handed out', async () => {
    const unit = fc.constantFrom(
      'a',
      'b',
      'ab',
      '\n',
      '\r\n',
      '€',
      '😀',
      '\x1b[31m',
      '\x1b]0;ab\x07',
      '\x1b]',
      'Ab',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(unit, { maxLength: 60 }),
        fc.integer({ min: 1, max: 9 }),
        fc.constantFrom('a', 'ab', 'ba', '€', '😀a', 'aB'),
        fc.boolean(),
        async (units, most, pattern, ignoreCase) => {
          const output = units.join('');
          const query = { pattern, ignoreCase, context: 1, limit: 1000, lineNumbers: true };
          const whole = await find(output, query);
          expect(await find(new MemorySource(output, most), query)).toEqual(whole);
          let offset = 0;
          const expected: [offset: number, line: number][] = [];
          const lines = output.split('\n');
          for (const [index, line] of lines.entries()) {
            const seen = reading(line, index === lines.length - 1);
            const fold = ignoreCase ? foldCase : (text: string): string => text;
            if (fold(seen).includes(fold(pattern))) expected.push([offset, index + 1]);
            offset += Buffer.byteLength(line) + 1;
          }
          expect(whole.hits.map((hit) => [hit.offset, hit.lineNumber])).toEqual(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('[S2] colours, links and titles do not hide a match, unless what was printed is asked for', async () => {
    const output = '\x1b[1mer\x1b[31mror\x1b[0m: \x1b]8;;http://x\x1b\\disk\x1b]8;;\x1b\\ full\n';
    const [hit] = (await find(output, { pattern: 'error: disk full' })).hits;
    expect(hit).toMatchObject({
      line: 'error: disk full',
      match: 'error: disk full',
      offset: 0,
      endOffset: output.length - 1,
    });
    expect((await find(output, { pattern: 'error', raw: true })).hits).toEqual([]);
    expect((await find(output, { pattern: '\x1b[31mror', raw: true })).hits[0]?.match).toBe(
      '\x1b[31mror',
    );
    expect((await find(output, { pattern: 'http://x' })).hits).toEqual([]);
  });

  test('[S2] invalid bytes are U+FFFD for the pattern as for the reader', async () => {
    const output = Buffer.from([0x61, 0xff, 0x62, 0x0a, 0xe2, 0x82, 0x0a]);
    expect(offsets(await find(output, { pattern: 'a\ufffdb' }))).toEqual([0]);
    expect(offsets(await find(output, { pattern: '\ufffd' }))).toEqual([0, 4]);
  });

  test('[S3] case is ignored without shifting the match', async () => {
    const output = 'İstanbul STRASSE ΟΔΟΣ x\n';
    expect((await find(output, { pattern: 'strasse', ignoreCase: true })).hits[0]?.match).toBe(
      'STRASSE',
    );
    expect((await find(output, { pattern: 'οδοσ', ignoreCase: true })).hits[0]?.match).toBe('ΟΔΟΣ');
    expect((await find(output, { pattern: 'strasse' })).hits).toEqual([]);
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const char = String.fromCodePoint(code);
      if (foldCase(char).length !== char.length)
        throw new Error(`U+${code.toString(16)} changes its length`);
    }
  });

  test('[S4] a long line is shown around its match, within 2048 bytes, characters whole', async () => {
    for (const place of [0, 5, 3000, 20_000]) {
      const text = `${'é€'.repeat(place)}NEEDLE${'😀'.repeat(2000)}`;
      const [hit] = (await find(`${text}\n`, { pattern: 'NEEDLE' })).hits;
      expect(hit?.line).toContain('NEEDLE');
      expect(Buffer.byteLength(hit?.line ?? '')).toBeLessThanOrEqual(2048);
      expect(Buffer.byteLength(hit?.line ?? '')).toBeGreaterThan(2030);
      expect(hit?.line).not.toContain('\ufffd');
      expect(hit?.endOffset).toBe(Buffer.byteLength(text));
    }
    const long = 'x'.repeat(4000);
    const [hit] = (await find(`${long}\n`, { pattern: long.slice(0, 3000), context: 1 })).hits;
    expect(Buffer.byteLength(hit?.match ?? '')).toBe(2048);
    const neighbours = await find(`${long}BEFORE\nhit\nAFTER${long}\n`, {
      pattern: 'hit',
      context: 1,
    });
    for (const line of [
      ...(neighbours.hits[0]?.before ?? []),
      ...(neighbours.hits[0]?.after ?? []),
    ]) {
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(2048);
    }
    expect(neighbours.hits[0]?.before[0]?.endsWith('BEFORE')).toBe(true);
    expect(neighbours.hits[0]?.after[0]?.startsWith('AFTER')).toBe(true);
  });

  test('[S5] lines around a hit reach over blocks', async () => {
    const lines = Array.from({ length: 40_000 }, (_, index) => `line ${index}`);
    const query = { pattern: 'line 1', context: 3, limit: 1000 };
    const result = await find(lines.join('\n'), { ...query, limit: 1000 });
    const indexOf = new Map(lines.map((line, index) => [line, index]));
    for (const hit of result.hits) {
      const index = indexOf.get(hit.line) ?? -1;
      expect(hit.before).toEqual(lines.slice(Math.max(0, index - 3), index));
      expect(hit.after).toEqual(lines.slice(index + 1, index + 4));
    }
    const late = await find(lines.join('\n'), { pattern: '999', context: 20, limit: 1000 });
    for (const hit of late.hits) {
      const index = indexOf.get(hit.line) ?? -1;
      expect([...hit.before, hit.line, ...hit.after]).toEqual(
        lines.slice(Math.max(0, index - 20), index + 21),
      );
    }
  });
});

/* oxlint-disable no-control-regex */
/** The line as a person reads it, by another way than the one tested. */
function reading(line: string, last: boolean): string {
  const escapes = last
    ? /\x1b\[31m|\x1b\]0;ab\x07|\x1b\][^\x07\x1b]*(?:\x07|(?=\x1b)|$)/g
    : /\x1b\[31m|\x1b\]0;ab\x07|\x1b\][^\x07\x1b]*(?:\x07|(?=\x1b))|\x1b\]/g;
  return line.replace(/\r$/, '').replace(escapes, '');
}
/* oxlint-enable no-control-regex */

describe('long lines', () => {
  test('[S6] a line longer than a piece is one line: found once, at its start, with its true end', async () => {
    const filler = 'x'.repeat(200_000);
    const output = `first\n${filler}NEEDLE${filler}\nNEEDLE last\n`;
    const result = await find(output, { pattern: 'NEEDLE', context: 1 });
    expect(result.hits.map(({ offset, endOffset }) => [offset, endOffset])).toEqual([
      [6, 400_012],
      [400_013, 400_024],
    ]);
    expect(result.hits[0]?.before).toEqual(['first']);
    expect(result.hits[0]?.after).toEqual(['NEEDLE last']);
    expect(result.hits[1]?.before[0]?.startsWith('xxx')).toBe(true);
    expect(result.hits[1]?.before[0]?.endsWith(' ...')).toBe(true);
  });

  test('[S6] a match is found wherever the pieces of its line meet, also with a colour in it', async () => {
    const needles = ['needle', 'nee\x1b[1mdle', 'n€€dle'];
    const patterns = ['needle', 'needle', 'n€€dle'];
    for (const [index, needle] of needles.entries()) {
      for (let place = 880; place < 1040; place += 1) {
        const line = `${'y'.repeat(place)}${needle}${'z'.repeat(3000)}`;
        const query = { pattern: patterns[index] ?? '', maxLineBytes: 1024 };
        expect([place, offsets(await find(new MemorySource(line, 100), query))]).toEqual([
          place,
          [0],
        ]);
      }
    }
  });

  test('[S6] the longest pattern is found wherever the pieces of its line meet', async () => {
    const pattern = 'é'.repeat(4095) + 'x';
    for (let place = 0; place < 80_000; place += 4001) {
      const line = `${'y'.repeat(place)}${pattern}${'z'.repeat(50_000)}`;
      const query = { pattern, maxLineBytes: 1024 };
      expect([place, offsets(await find(line, query))]).toEqual([place, [0]]);
    }
  });

  test('[S6] 100 MB without a line break: found near its end', async () => {
    const size = 100_000_000;
    const needleAt = size - 70_000;
    const needle = Buffer.from('NEEDLE');
    const source: ByteSource = {
      start: 0,
      end: size,
      read(offset, maxBytes) {
        const bytes = Buffer.alloc(Math.min(maxBytes, size - offset), 'x');
        for (const [index, byte] of needle.entries()) {
          const at = needleAt + index - offset;
          if (at >= 0 && at < bytes.length) bytes[at] = byte;
        }
        return Promise.resolve(bytes.length > 0 ? { offset, bytes } : undefined);
      },
    };
    const result = await find(source, { pattern: 'NEEDLE', ignoreCase: true, context: 2 });
    expect(result.hits.map(({ offset, endOffset, match }) => [offset, endOffset, match])).toEqual([
      [0, size, 'NEEDLE'],
    ]);
    expect(result.resume.lineStart).toBe(0);
    expect(size - result.resume.offset).toBeLessThan(70_000);
  });
});

describe('going on', () => {
  test('[S7] the limit ends a search where the next one goes on', async () => {
    const output = Array.from({ length: 50 }, (_, index) => `hit ${index}`).join('\n');
    const seen: string[] = [];
    let from = 0;
    for (;;) {
      const result = await find(output, { pattern: 'hit', from, limit: 7, context: 2 });
      seen.push(...result.hits.map((hit) => hit.line));
      if (!result.truncated) break;
      expect(result.hits.length).toBe(7);
      expect(result.hits.at(-1)?.after.length).toBe(
        result.searchedTo === output.length ? 0 : Math.min(2, 50 - seen.length),
      );
      from = result.searchedTo;
    }
    expect(seen).toEqual(output.split('\n'));
  });

  test('[S7] the limit inside a line of many pieces still ends the search behind that line', async () => {
    const output = `hit${'x'.repeat(300_000)}\nhit two\n`;
    const first = await find(output, { pattern: 'hit', limit: 1 });
    expect(first).toMatchObject({ searchedTo: 300_004, resumeFrom: 300_004, truncated: true });
    const second = await find(output, { pattern: 'hit', limit: 1, resume: first.resume });
    expect(second).toMatchObject({
      searchedTo: 300_012,
      truncated: false,
      hits: [{ offset: 300_004 }],
    });
  });

  test('[S7] an answer is never larger than a few megabytes: it then ends like at a limit', async () => {
    const output = `${'hit '.repeat(500)}\n`.repeat(3000);
    const result = await find(output, { pattern: 'hit', context: 20, limit: 1000 });
    expect(result.truncated).toBe(true);
    expect(JSON.stringify(result).length).toBeLessThan(5 * 1024 * 1024);
    expect(result.searchedTo).toBe((result.hits.at(-1)?.endOffset ?? 0) + 1);
  });

  test('[S8] dropped bytes are a line break and are counted, up to where the search came', async () => {
    const source = new MemorySource('nee').drop(100).add('dle needle\nx\n').drop(50).add('needle');
    const result = await find(source, { pattern: 'needle' });
    expect(offsets(result)).toEqual([103, 166]);
    expect(result.missedBytes).toBe(150);
    expect(await find(source, { pattern: 'needle', limit: 1, context: 5 })).toMatchObject({
      hits: [{ before: ['nee'], after: ['x', 'needle'] }],
      missedBytes: 100,
      searchedTo: 114,
      truncated: true,
    });
    expect((await find(new MemorySource().drop(10).add('a'), { pattern: 'a' })).missedBytes).toBe(
      10,
    );
    const lostEnd = await find(new MemorySource('partial').drop(10), { pattern: 'partial' });
    expect(lostEnd).toMatchObject({
      missedBytes: 10,
      searchedTo: 17,
      resumeFrom: 17,
      hits: [{ endOffset: 7 }],
    });
  });

  test('[S8] a range is searched as if nothing else existed', async () => {
    const result = await find('aaa\nbab\naaa', { pattern: 'a', from: 4, to: 6, context: 1 });
    expect(result.hits).toMatchObject([
      { offset: 4, endOffset: 6, line: 'ba', before: [], after: [] },
    ]);
    expect(result).toMatchObject({ searchedFrom: 4, searchedTo: 6, resumeFrom: 4 });
    expect(await find('aaa', { pattern: 'a', from: 9 })).toMatchObject({ hits: [], searchedTo: 9 });
  });

  test('[S9] searching after each growth reports every matching line once, split at every byte', async () => {
    const unit = fc.constantFrom(
      'needle',
      'needle\n',
      'nee',
      'dle',
      '\n',
      '\x1b[31m',
      '\x1b]0;x',
      '\x07',
      '€',
      'x'.repeat(700),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(unit, { maxLength: 14 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        fc.integer({ min: 1, max: 3 }),
        async (units, steps, limit) => {
          const output = Buffer.from(units.join(''));
          const query = { pattern: 'needle', maxLineBytes: 1024 };
          const source = new MemorySource();
          const seen: number[] = [];
          let result = await find(source, { ...query, limit });
          for (let at = 0, step = 0; at < output.length; step += 1) {
            const size = steps[step % steps.length] ?? 1;
            source.add(output.subarray(at, at + size));
            at += size;
            do {
              result = await find(source, { ...query, limit, resume: result.resume });
              seen.push(...offsets(result));
            } while (result.truncated);
            expect(result.searchedTo).toBe(source.end);
          }
          expect(seen).toEqual(offsets(await find(output, { ...query, limit: 1000 })));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('[S9] a line that was reported while incomplete does not hide the line behind it', async () => {
    const source = new MemorySource('needle');
    const first = await find(source, { pattern: 'needle', limit: 1 });
    expect(first.resume).toEqual({ offset: 0, lineStart: 0, reported: true });
    source.add(' one\nneedle two\nneedle three\n');
    const second = await find(source, { pattern: 'needle', limit: 1, resume: first.resume });
    expect(second).toMatchObject({ hits: [{ line: 'needle two' }], truncated: true });
  });

  test('[S9] a search after a growth reads what is new and the incomplete line, not more', async () => {
    const source = new MemorySource(`${'x'.repeat(99)}\n`.repeat(10_000));
    const first = await find(source, { pattern: 'ready', limit: 1 });
    expect(first.resume.offset).toBe(1_000_000);
    source.add('rea');
    const second = await find(source, { pattern: 'ready', limit: 1, resume: first.resume });
    expect(second.resume.offset).toBe(1_000_000);
    source.add('dy on port 80');
    source.reads = 0;
    const third = await find(source, { pattern: 'ready', limit: 1, resume: second.resume });
    expect(third.hits).toMatchObject([{ offset: 1_000_000, line: 'ready on port 80' }]);
    expect(source.reads).toBe(2);
    expect(
      (await find(source, { pattern: 'ready', limit: 1, from: second.resumeFrom })).hits.length,
    ).toBe(1);
  });

  test('[S9] a line that grows for ever is not searched from its start each time', async () => {
    const source = new MemorySource();
    let position = (await find(source, { pattern: 'ready', limit: 1 })).resume;
    for (let round = 0; round < 40; round += 1) {
      source.add('.'.repeat(50_000));
      position = (await find(source, { pattern: 'ready', limit: 1, resume: position })).resume;
      expect(source.end - position.offset).toBeLessThanOrEqual(64 * 1024);
    }
    source.add('ready');
    const { hits } = await find(source, { pattern: 'ready', limit: 1, resume: position });
    expect(hits).toMatchObject([{ offset: 0, endOffset: 2_000_005, match: 'ready' }]);
  });
});

describe('limits', () => {
  test('[S10] a query that cannot be answered says why', async () => {
    await expect(find('x', { pattern: '' })).rejects.toMatchObject({ code: 'pattern_invalid' });
    await expect(find('x', { pattern: 'x'.repeat(4097) })).rejects.toMatchObject({
      code: 'pattern_invalid',
    });
    await expect(find('x', { pattern: 'a\nb' })).rejects.toMatchObject({ code: 'pattern_invalid' });
    await expect(find('x', { pattern: 'a', context: 21 })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    await expect(find('x', { pattern: 'a', limit: 1001 })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    await expect(find('x', { pattern: 'a', limit: 0 })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  test('[S10] a search that is given up ends as aborted', async () => {
    const given = AbortSignal.abort();
    await expect(
      matcher.search(new MemorySource('x'), { kind: 'text', pattern: 'x' }, { signal: given }),
    ).rejects.toMatchObject({
      code: 'aborted',
    });
  });
});
