import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { temporaryFolder } from '../../test/support/hosts.ts';
import { StateLog } from './state-log.ts';

const report = (): void => undefined;

describe('the log of states', () => {
  it('[K24] has one line per change, private, and what a client chose cannot break a line', async () => {
    const path = join(temporaryFolder(), 'state.log');
    const log = new StateLog({ path, clock: new FakeClock(), report });
    log.note({ event: 'start', reason: 'pid 1' });
    log.note({
      event: 'exit',
      process: { owner: 'a b', id: 'x\n\u001b[2J"\u202e' },
      reason: 'exit 7',
    });
    log.note({
      event: 'forget',
      process: { owner: 'cli', id: 'i'.repeat(300) },
      reason: 'removed',
    });
    await log.flush();
    log.note({ event: 'stop', reason: 'SIGTERM' });
    log.close();
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines.map((line) => line.replace(/^\S+ /, ''))).toEqual([
      'start keeper: pid 1',
      String.raw`exit "a b" "x\u{a}\u{1b}[2J\"\u{202e}": exit 7`,
      `forget cli "${'i'.repeat(200)}...": removed`,
      'stop keeper: SIGTERM',
      '',
    ]);
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z start/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('[K24] is bounded: beyond its size the file becomes the older one, of which there is one', async () => {
    const path = join(temporaryFolder(), 'state.log');
    const log = new StateLog({ path, clock: new FakeClock(), report, maxBytes: 1000 });
    for (let batch = 0; batch < 50; batch += 1) {
      for (let line = 0; line < 5; line += 1)
        log.note({ event: 'start', reason: `${batch}.${line}` });
      await log.flush();
    }
    log.close();
    const [older, newer] = [readFileSync(`${path}.1`, 'utf8'), readFileSync(path, 'utf8')];
    expect(Math.max(older.length, newer.length)).toBeLessThan(1500);
    expect(`${older}${newer}`).toMatch(/49\.4\n$/);
    expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600);
  });

  it('[K24] is written in batches: many changes of a moment are one write, a moment later', async () => {
    const path = join(temporaryFolder(), 'state.log');
    const clock = new FakeClock();
    const log = new StateLog({ path, clock, report });
    for (let line = 0; line < 1000; line += 1) log.note({ event: 'start', reason: String(line) });
    expect([readFileSync(path, 'utf8'), clock.pending]).toEqual(['', 1]);
    // More than may wait for a disk: the rest is counted.
    for (let line = 0; line < 10_000; line += 1) log.note({ event: 'exit', reason: String(line) });
    log.close();
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines[0]).toContain('missing keeper: 1000 lines could not be written');
    expect(lines).toHaveLength(1 + 10_000 + 1);
  });
});
