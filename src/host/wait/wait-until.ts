// The one way to wait: checks a condition now and after each wake-up, until it is met, the timeout passes, or the
// caller aborts. It does not poll, and leaves nothing behind.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { abortedError } from '../../protocol/cancellation.ts';

export interface WaitOptions {
  readonly clock: Clock;
  /** Without it the wait has no time limit. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: CancelSignal | undefined;
  /** Subscribes to changes of the condition; returns a function that unsubscribes. */
  readonly subscribe: (wake: () => void) => () => void;
  /** Called once when the wait is over. */
  readonly ended?: () => void;
}

/** Resolves with the result of `check`, or with undefined after the timeout. Rejects with `aborted`. */
export function waitUntil<T>(
  check: () => T | undefined,
  options: WaitOptions,
): Promise<T | undefined> {
  const { clock, timeoutMs, signal, subscribe, ended } = options;
  try {
    if (signal?.aborted) throw abortedError();
    const met = check();
    if (met !== undefined || timeoutMs === 0) {
      ended?.();
      return Promise.resolve(met);
    }
  } catch (error) {
    ended?.();
    return Promise.reject(error);
  }
  return new Promise((resolve, reject) => {
    let settled = false;
    const finish = (settle: () => void): void => {
      if (settled) return;
      settled = true;
      unsubscribe();
      cancelTimer?.();
      signal?.removeEventListener('abort', giveUp);
      ended?.();
      settle();
    };
    const giveUp = (): void => finish(() => reject(abortedError()));
    const wake = (): void => {
      if (settled) return;
      try {
        const answer = check();
        if (answer !== undefined) finish(() => resolve(answer));
      } catch (error) {
        finish(() => reject(error));
      }
    };
    const unsubscribe = subscribe(wake);
    const cancelTimer =
      timeoutMs === undefined
        ? undefined
        : clock.after(timeoutMs, () => finish(() => resolve(undefined)));
    signal?.addEventListener('abort', giveUp);
  });
}
