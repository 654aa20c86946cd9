import { describe, expect, it } from 'vitest';
import { Cancellation, realSignal } from './cancellation.ts';

describe('cancellation', () => {
  it('[K12] who listens is told once, who has left is not, and who comes later sees it', () => {
    const cancellation = new Cancellation();
    const told: string[] = [];
    const leaving = (): void => void told.push('left');
    cancellation.signal.addEventListener('abort', () => told.push('stayed'));
    cancellation.signal.addEventListener('abort', leaving);
    cancellation.signal.removeEventListener('abort', leaving);
    expect(() => cancellation.signal.throwIfAborted()).not.toThrow();
    cancellation.abort();
    cancellation.abort();
    expect([told, cancellation.signal.aborted]).toEqual([['stayed'], true]);
    expect(() => cancellation.signal.throwIfAborted()).toThrow('stopped waiting');
  });

  it('[API26] what Node is given is a real signal, which ends with the one that stands for it', () => {
    const cancellation = new Cancellation();
    const early = realSignal(cancellation.signal);
    expect([early instanceof AbortSignal, early.aborted]).toEqual([true, false]);
    cancellation.abort();
    expect([early.aborted, realSignal(cancellation.signal).aborted]).toEqual([true, true]);
    const { signal } = new AbortController();
    expect(realSignal(signal)).toBe(signal);
  });
});
