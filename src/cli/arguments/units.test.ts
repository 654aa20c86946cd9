import { describe, expect, it } from 'vitest';
import {
  formatAge,
  formatBytes,
  formatDuration,
  parseDuration,
  parseMoment,
  plural,
} from './units.ts';

describe('units', () => {
  it.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['30', 30_000],
    ['2m', 120_000],
    ['2h', 7_200_000],
    ['1d', 86_400_000],
    ['0', 0],
    ['', undefined],
    ['s', undefined],
    ['-1s', undefined],
    ['1e3', undefined],
    ['1 s', undefined],
    ['5 minutes', undefined],
    ['999999999999d', undefined],
  ])('[C23] reads the duration %j as %j milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it('[C23] reads a moment as so long ago, or as a date with or without a time', () => {
    const now = Date.parse('2026-01-05T12:00:00Z');
    const read = (text: string): string | undefined => {
      const ms = parseMoment(text, now);
      return ms === undefined ? undefined : new Date(ms).toISOString();
    };
    expect(read('10m')).toBe('2026-01-05T11:50:00.000Z');
    expect(read('30')).toBe('2026-01-05T11:59:30.000Z');
    expect(read('2026-01-05T10:00Z')).toBe('2026-01-05T10:00:00.000Z');
    expect(read('2026-01-05')).toBe('2026-01-05T00:00:00.000Z');
    for (const text of ['', 'yesterday', '12:00', '2026-13-45', '2026-01-05T'])
      expect(read(text)).toBeUndefined();
  });

  it('[C23] writes durations, ages and sizes so that they are read at a glance', () => {
    expect(
      [3, 999, 999.6, 9949, 12_000, 59_949, 61_000, 3_600_000, 90_000_000].map(formatDuration),
    ).toEqual(['3ms', '999ms', '1.0s', '9.9s', '12s', '60s', '1m 1s', '1h 0m', '1d 1h']);
    expect([-5, 999, 59_999, 60_000, 86_399_999, 86_400_000].map(formatAge)).toEqual([
      '0s',
      '0s',
      '59s',
      '1m',
      '23h',
      '1d',
    ]);
    expect([0, 1023, 1024, 10_240, 1_048_575, 1_048_576, 5e12].map(formatBytes)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KB',
      '10 KB',
      '1.0 MB',
      '1.0 MB',
      '4657 GB',
    ]);
    expect([plural(1, 'hit'), plural(2, 'process', 'processes')]).toEqual(['1 hit', '2 processes']);
  });
});
