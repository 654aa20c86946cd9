import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../test/support/fake-clock.ts';
import type { CancelSignal } from '../base/cancel-signal.ts';
import { SharedWaits } from './shared-waits.ts';

interface Asked {
  readonly gone: CancelSignal;
  readonly answer: (value: string) => void;
  readonly fail: (error: Error) => void;
}

function setUp() {
  const clock = new FakeClock();
  const waits = new SharedWaits<string>(clock);
  const asked: Asked[] = [];
  const join = (key: string, leave = new AbortController(), timeoutMs = 1000) =>
    waits.join(
      key,
      { timeoutMs, gone: leave.signal },
      (gone) =>
        new Promise((answer, fail) => {
          asked.push({ gone, answer, fail });
        }),
    );
  return { clock, asked, join };
}

describe('shared waits', () => {
  it('[SV20] who waits for the same thing is answered by one question', async () => {
    const { clock, asked, join } = setUp();
    const same = [join('a'), join('a'), join('a')];
    const other = join('b');
    expect(asked).toHaveLength(2);
    asked[0]?.answer('A');
    expect(await Promise.all(same)).toEqual(['A', 'A', 'A']);
    // A later caller asks again.
    const later = join('a');
    expect(asked).toHaveLength(3);
    asked[1]?.answer('B');
    asked[2]?.answer('C');
    expect([await other, await later]).toEqual(['B', 'C']);
    expect(clock.pending).toBe(0);
  });

  it('[SV20] each leaves when it likes or when its own time is over; with the last the question is taken back', async () => {
    const { clock, asked, join } = setUp();
    const leaving = new AbortController();
    const [first, second, third] = [join('a', leaving), join('a'), join('a', undefined, 5000)];
    leaving.abort();
    await expect(first).rejects.toMatchObject({ code: 'aborted' });
    clock.advance(1000);
    expect(await second).toBeUndefined();
    expect(asked[0]?.gone.aborted).toBe(false);
    clock.advance(4000);
    expect(await third).toBeUndefined();
    expect(asked[0]?.gone.aborted).toBe(true);
    const gone = AbortSignal.abort();
    await expect(join('a', { signal: gone } as AbortController)).rejects.toMatchObject({
      code: 'aborted',
    });
    expect([asked.length, clock.pending]).toEqual([1, 0]);
  });

  it('[SV20] all callers get a failure', async () => {
    const { asked, join } = setUp();
    const both = [join('a'), join('a')];
    asked[0]?.fail(new Error('no'));
    const settled = await Promise.allSettled(both);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});
