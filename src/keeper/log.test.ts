import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { temporaryFolder } from '../../test/support/hosts.ts';
import { Log, problemEntry, type LogOptions } from './log.ts';

function open(options: Partial<LogOptions> = {}): { log: Log; path: string; clock: FakeClock } {
  const path = join(temporaryFolder(), 'keeper.log');
  const clock = new FakeClock();
  const report = (): void => undefined;
  const log = new Log({
    path,
    clock,
    report,
    part: 'keeper',
    level: 'info',
    format: 'text',
    ...options,
  });
  return { log, path, clock };
}

const HOSTILE = 'x\n2026-01-01T00:00:00.000Z error \u001b[2J"\u202e';

describe('a log', () => {
  it('[K24] [LOG1] has one line per change, private, and what a client chose cannot break a line', async () => {
    const { log, path } = open();
    log.note('info', { event: 'start', message: 'pid 1' });
    log.note('info', {
      event: 'exit',
      process: { owner: 'a b', id: HOSTILE },
      message: `SIGTERM by ${HOSTILE}`,
    });
    const long = { owner: 'cli', id: 'i'.repeat(300) };
    log.note('info', { event: 'forget', process: long, message: 'removed' });
    await log.flush();
    log.note('warn', problemEntry(`unexpected: Error: no\n    at ${HOSTILE}`));
    log.note('info', { event: 'stop', message: 'SIGTERM' });
    await log.close();
    const text = String.raw`x\u{a}2026-01-01T00:00:00.000Z error \u{1b}[2J\"\u{202e}`;
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines.map((line) => line.replace(/^\d\S+ /, ''))).toEqual([
      'info  start keeper: pid 1',
      `info  exit "a b" "${text}": SIGTERM by ${text}`,
      `info  forget cli "${'i'.repeat(200)}...": removed`,
      'warn  problem keeper: unexpected: Error: no',
      '    at x',
      String.raw`    2026-01-01T00:00:00.000Z error \u{1b}[2J\"\u{202e}`,
      'info  stop keeper: SIGTERM',
      '',
    ]);
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z info/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('[LOG1] as JSON each line is one object of printable ASCII, which gives the exact names back', async () => {
    const { log, path } = open({ format: 'json' });
    log.note('info', { event: 'exit', process: { owner: 'cli', id: HOSTILE }, message: 'exit 7' });
    log.note('warn', problemEntry(`it failed\n  ${HOSTILE}`));
    const more = { status: 200, route: 'GET /a' };
    log.note('info', { event: 'request', message: 'GET /a 200', more });
    await log.close();
    const text = readFileSync(path, 'utf8');
    expect(text).toMatch(/^[\x20-\x7e\n]*$/);
    const lines = text.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      {
        time: expect.stringMatching(/Z$/),
        level: 'info',
        part: 'keeper',
        event: 'exit',
        owner: 'cli',
        process: HOSTILE,
        message: 'exit 7',
      },
      expect.objectContaining({ level: 'warn', message: 'it failed', detail: `  ${HOSTILE}` }),
      expect.objectContaining({ event: 'request', status: 200, route: 'GET /a' }),
    ]);
  });

  it('[LOG1] lines below its level are left out', async () => {
    const { log, path } = open({ level: 'warn' });
    for (const level of ['debug', 'info', 'warn', 'error'] as const)
      log.note(level, { event: 'x', message: level });
    expect([log.has('info'), log.has('warn')]).toEqual([false, true]);
    await log.close();
    expect(readFileSync(path, 'utf8').match(/(?<=: )\w+$/gm)).toEqual(['warn', 'error']);
  });

  it('[LOG2] a line that is being written when the log closes is in it, before the last one', async () => {
    for (let round = 0; round < 100; round += 1) {
      const { log, path } = open();
      log.note('info', { event: 'a', message: 'first' });
      const flushed = log.flush();
      log.note('info', { event: 'b', message: 'last' });
      await log.close();
      expect(readFileSync(path, 'utf8').match(/(?<=: ).+$/gm)).toEqual(['first', 'last']);
      await flushed;
    }
  });

  it('[LOG2] is bounded: beyond its size the file becomes the older one, of which there is one', async () => {
    const files: number[] = [];
    const { log, path } = open({ maxBytes: 1000, opened: (fd) => void files.push(fd) });
    for (let batch = 0; batch < 50; batch += 1) {
      for (let line = 0; line < 5; line += 1)
        log.note('info', { event: 'start', message: `${batch}.${line}` });
      await log.flush();
    }
    await log.close();
    const [older, newer] = [readFileSync(`${path}.1`, 'utf8'), readFileSync(path, 'utf8')];
    expect(Math.max(older.length, newer.length)).toBeLessThan(1500);
    expect(`${older}${newer}`).toMatch(/49\.4\n$/);
    expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600);
    expect(files.length).toBeGreaterThan(5);
  });

  it('[LOG2] a file that an earlier program left too large is rotated at once', async () => {
    const { log, path } = open();
    log.note('warn', { event: 'x', message: 'y'.repeat(190) });
    await log.close();
    const next = new Log({
      path,
      clock: new FakeClock(),
      report: () => undefined,
      part: 'keeper',
      level: 'info',
      format: 'text',
      maxBytes: 100,
    });
    await next.close();
    expect([statSync(path).size, statSync(`${path}.1`).size > 200]).toEqual([0, true]);
  });

  it('[LOG2] is written in batches: many changes of a moment are one write, a moment later; problems at once', async () => {
    const { log, path, clock } = open();
    const note = (message: string): void => log.note('info', { event: 'start', message });
    for (let line = 0; line < 1000; line += 1) note(String(line));
    expect([readFileSync(path, 'utf8'), clock.pending]).toEqual(['', 1]);
    // More than may wait for a disk: the rest is counted.
    for (let line = 0; line < 10_000; line += 1) note(String(line));
    log.note('warn', { event: 'problem', message: 'not the last one' });
    await log.close();
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines[0]).toContain('missing keeper: 1001 lines could not be written');
    expect(lines).toHaveLength(1 + 10_000 + 1);
    const now = open();
    now.log.note('info', { event: 'a', message: 'before' });
    now.log.note('error', { event: 'b', message: 'now' });
    expect(readFileSync(now.path, 'utf8').match(/(?<=: )\w+$/gm)).toEqual(['before', 'now']);
    await now.log.close();
  });
});
