// Schedules work fairly between owners by cost. Limits what runs concurrently, what begins in one turn of the event loop,
// and how much of one owner runs and waits.

import type { CancelSignal } from './cancel-signal.ts';
import { FairQueue } from './fair-queue.ts';

export interface FairTurnsOptions {
  /** Running concurrently; no limit by default, as for the next three. */
  readonly atOnce?: number;
  /** Running concurrently for one owner. */
  readonly perOwner?: number;
  /** Begun in one turn of the event loop, so that a burst does not block other work. */
  readonly perLoop?: number;
  /** Waiting for one owner; further calls are refused. */
  readonly mostWaiting?: number;
  /** Charges owners for the time that their work takes, not only for its number. */
  readonly byTime?: boolean;
  /** A further condition for the next to begin. Call `next` when it becomes true. */
  readonly isOpen?: () => boolean;
  /** Makes the error for a call beyond `mostWaiting`. */
  readonly refuse?: () => Error;
  /** Makes the error for a caller that aborted while it waited. */
  readonly givenUp?: () => Error;
}

interface Waiting {
  readonly owner: string;
  readonly begin: () => void;
}

export class FairTurns {
  private readonly options: FairTurnsOptions;
  private readonly queue = new FairQueue<Waiting>();
  private readonly running = new Map<string, number>();
  private total = 0;
  private begunInLoop = 0;
  private scheduled = false;

  constructor(options: FairTurnsOptions) {
    this.options = options;
  }

  async run<T>(owner: string, act: () => Promise<T>, signal?: CancelSignal): Promise<T> {
    const turn = this.pass(owner, signal);
    if (turn) await turn;
    const beganMs = performance.now();
    try {
      return await act();
    } finally {
      if (this.options.byTime) this.queue.charge(owner, performance.now() - beganMs);
      this.done(owner);
    }
  }

  /** Undefined if the caller may begin now; otherwise resolves when it may. Call `done` once for each that has begun. */
  pass(owner: string, signal?: CancelSignal): Promise<void> | undefined {
    if (!this.isFull() && this.queue.count(owner) === 0 && this.may(owner)) {
      this.begin(owner);
      return undefined;
    }
    return this.wait(owner, signal);
  }

  done(owner: string): void {
    this.total -= 1;
    const left = (this.running.get(owner) ?? 0) - 1;
    if (left > 0) this.running.set(owner, left);
    else this.running.delete(owner);
    this.next();
  }

  /** Begins everything that may begin. */
  next(): void {
    while (this.queue.size > 0 && !this.isFull()) {
      const waiting = this.queue.shift((owner) => this.may(owner));
      if (!waiting) return;
      this.begin(waiting.owner);
      waiting.begin();
    }
  }

  private isFull(): boolean {
    const { atOnce = Infinity, perLoop = Infinity, isOpen } = this.options;
    return this.total >= atOnce || this.begunInLoop >= perLoop || isOpen?.() === false;
  }

  private may(owner: string): boolean {
    return (this.running.get(owner) ?? 0) < (this.options.perOwner ?? Infinity);
  }

  private begin(owner: string): void {
    this.total += 1;
    this.running.set(owner, (this.running.get(owner) ?? 0) + 1);
    if (this.options.perLoop === undefined) return;
    this.begunInLoop += 1;
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.begunInLoop = 0;
      this.next();
    });
  }

  private wait(owner: string, signal: CancelSignal | undefined): Promise<void> {
    const { mostWaiting = Infinity } = this.options;
    if (signal?.aborted === true) return Promise.reject(this.givenUp());
    if (this.queue.count(owner) >= mostWaiting) return Promise.reject(this.refusal());
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.queue.delete(owner, waiting);
        reject(this.givenUp());
      };
      const begin = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const waiting = { owner, begin };
      this.queue.push(owner, waiting);
      signal?.addEventListener('abort', leave);
    });
  }

  private refusal(): Error {
    return this.options.refuse?.() ?? new Error('Too much of this owner waits.');
  }

  private givenUp(): Error {
    return this.options.givenUp?.() ?? new Error('The caller gave up.');
  }
}
