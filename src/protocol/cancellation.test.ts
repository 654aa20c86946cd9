import { describe, expect, it } from 'vitest';
import { Cancellation, realSignal } from './cancellation.ts';

describe('cancellation', () => {
  it('[K12] each listener is called once, a removed one is not, and a later caller sees that it was aborted', () => {
    const cancellation = new Cancellation();
    const called: string[] = [];
    const leave = (): void => void called.push('left');
    cancellation.addEventListener('abort', () => called.push('stayed'));
    cancellation.addEventListener('abort', leave);
    cancellation.removeEventListener('abort', leave);
    cancellation.abort();
    cancellation.abort();
    expect([called, cancellation.aborted]).toEqual([['stayed'], true]);
  });

  it('[API26] Node gets an AbortSignal that aborts with the cancellation', () => {
    const cancellation = new Cancellation();
    const early = realSignal(cancellation);
    expect([early instanceof AbortSignal, early.aborted]).toEqual([true, false]);
    cancellation.abort();
    expect([early.aborted, realSignal(cancellation).aborted]).toEqual([true, true]);
    const { signal } = new AbortController();
    expect(realSignal(signal)).toBe(signal);
  });
});
