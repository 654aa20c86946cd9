// Clients that wait for the same thing share one request to the host and one answer. Each still leaves by its own
// timeout or when it disconnects.

import type { CancelSignal } from '../base/cancel-signal.ts';
import type { Clock } from '../base/clock.ts';
import { Cancellation } from '../protocol/cancellation.ts';
import { clientGone } from './http/paced-write.ts';

interface Wait<T> {
  answered: boolean;
  readonly leave: Cancellation;
  readonly callers: Set<Caller<T>>;
}

interface Caller<T> {
  readonly resolve: (value: T | undefined) => void;
  readonly reject: (error: unknown) => void;
}

export interface Patience {
  readonly timeoutMs: number;
  readonly gone: CancelSignal;
}

export class SharedWaits<T> {
  private readonly clock: Clock;
  private readonly waits = new Map<string, Wait<T>>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The answer to the first caller's `ask` with this key; undefined if this caller's timeout passes first. */
  join(
    key: string,
    { timeoutMs, gone }: Patience,
    ask: (gone: CancelSignal) => Promise<T>,
  ): Promise<T | undefined> {
    if (gone.aborted) return Promise.reject(clientGone());
    return new Promise((resolve, reject) => {
      const wait = this.waits.get(key) ?? this.begin(key, ask);
      const over = (settle: () => void): void => {
        cancel();
        gone.removeEventListener('abort', left);
        wait.callers.delete(caller);
        if (wait.callers.size === 0) this.end(key, wait);
        settle();
      };
      const left = (): void => over(() => reject(clientGone()));
      const cancel = this.clock.after(timeoutMs, () => over(() => resolve(undefined)));
      const caller: Caller<T> = {
        resolve: (value) => over(() => resolve(value)),
        reject: (error) => over(() => reject(error)),
      };
      gone.addEventListener('abort', left);
      wait.callers.add(caller);
    });
  }

  private begin(key: string, ask: (gone: CancelSignal) => Promise<T>): Wait<T> {
    const wait: Wait<T> = { answered: false, leave: new Cancellation(), callers: new Set() };
    this.waits.set(key, wait);
    ask(wait.leave).then(
      (value) => {
        this.answered(key, wait);
        for (const caller of wait.callers) caller.resolve(value);
      },
      (error: unknown) => {
        this.answered(key, wait);
        for (const caller of wait.callers) caller.reject(error);
      },
    );
    return wait;
  }

  private answered(key: string, wait: Wait<T>): void {
    wait.answered = true;
    this.forget(key, wait);
  }

  /** The last caller has left. */
  private end(key: string, wait: Wait<T>): void {
    this.forget(key, wait);
    if (!wait.answered) wait.leave.abort();
  }

  private forget(key: string, wait: Wait<T>): void {
    if (this.waits.get(key) === wait) this.waits.delete(key);
  }
}
