// Cancels what a caller waits for, at less cost than an AbortController.

import type { CancelSignal } from '../base/cancel-signal.ts';
import type { Clock } from '../base/clock.ts';
import { HoldfastError } from './errors.ts';

/** An AbortController with its signal and listeners costs 1 KiB per parked wait, and a short request more than its route. */
export class Cancellation implements CancelSignal {
  aborted = false;
  private readonly listeners: (() => void)[] = [];

  addEventListener(_type: 'abort', listener: () => void): void {
    this.listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const index = this.listeners.indexOf(listener);
    if (index >= 0) this.listeners.splice(index, 1);
  }

  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (const listener of this.listeners.splice(0)) listener();
  }
}

/** An AbortSignal for Node's own functions, which accept nothing else. */
export function realSignal(signal: CancelSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const controller = new AbortController();
  if (signal.aborted) controller.abort();
  else signal.addEventListener('abort', () => controller.abort());
  return controller.signal;
}

export function abortedError(): HoldfastError {
  return new HoldfastError('aborted', 'The caller stopped waiting.');
}

/** Resolves after `ms`; rejects with `aborted` if the signal aborts first. */
export function pause(clock: Clock, ms: number, signal?: CancelSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      cancel();
      reject(abortedError());
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', leave);
      resolve();
    });
    if (signal?.aborted === true) leave();
    else signal?.addEventListener('abort', leave);
  });
}
