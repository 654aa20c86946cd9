// Jobs for one timed thread, done one after the other. A job that takes too long or fails costs the thread and is refused
// by itself; the next one finds a new thread. A thread without work leaves after a while.

import type { TransferListItem } from 'node:worker_threads';
import type { Clock } from './clock.ts';
import { TimedThread } from './timed-thread.ts';
import type { JobEnd } from './timed-thread.ts';

export interface TimedQueueOptions {
  readonly clock: Clock;
  readonly name: string;
  readonly file: URL;
  readonly maxHeapMb: number;
  /** Processor time for one job. */
  readonly budgetMs: number;
  readonly idleMs: number;
}

/** The job took too long or too much memory. */
export class JobTooHeavy extends Error {
  readonly outOfMemory: boolean;

  constructor(name: string, outOfMemory: boolean) {
    super(`A job of ${name} needed too much ${outOfMemory ? 'memory' : 'time'}.`);
    this.outOfMemory = outOfMemory;
  }
}

interface Task<Job, Answer> {
  readonly job: Job;
  readonly transfer: readonly TransferListItem[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: Error) => void;
}

export class TimedQueue<Job, Answer> {
  private readonly options: TimedQueueOptions;
  private thread: TimedThread<Job, Answer> | undefined;
  private readonly queue: Task<Job, Answer>[] = [];
  private current: Task<Job, Answer> | undefined;
  private cancelIdle: (() => void) | undefined;
  private closed = false;
  private readonly ending = new Set<Promise<unknown>>();

  constructor(options: TimedQueueOptions) {
    this.options = options;
  }

  ask(job: Job, transfer: readonly TransferListItem[] = []): Promise<Answer> {
    if (this.closed) return Promise.reject(this.closedError());
    return new Promise((resolve, reject) => {
      this.queue.push({ job, transfer, resolve, reject });
      this.next();
    });
  }

  /** Resolves when every thread is gone; what is not done by then is refused. */
  async close(): Promise<void> {
    this.closed = true;
    const tasks = [...(this.current === undefined ? [] : [this.current]), ...this.queue.splice(0)];
    this.dropThread();
    for (const task of tasks) task.reject(this.closedError());
    await Promise.all(this.ending);
  }

  private next(): void {
    if (this.current !== undefined) return;
    this.current = this.queue.shift();
    if (this.current === undefined) return;
    this.cancelIdle?.();
    const { name, file, maxHeapMb, budgetMs } = this.options;
    this.thread ??= new TimedThread({ name, file, maxHeapMb, tell: (end) => this.ended(end) });
    this.thread.start(this.current.job, budgetMs, this.current.transfer);
  }

  private ended(end: JobEnd<Answer>): void {
    const task = this.current;
    this.current = undefined;
    if (end.kind === 'answer') task?.resolve(end.answer);
    else {
      this.dropThread();
      const heavy = end.kind === 'slow' || end.outOfMemory;
      task?.reject(heavy ? new JobTooHeavy(this.options.name, end.kind !== 'slow') : end.error);
    }
    this.next();
    if (this.current !== undefined || this.thread === undefined) return;
    this.cancelIdle?.();
    this.cancelIdle = this.options.clock.after(this.options.idleMs, () => this.dropThread());
  }

  private dropThread(): void {
    this.cancelIdle?.();
    this.cancelIdle = undefined;
    this.current = undefined;
    if (this.thread === undefined) return;
    const ending = this.thread.end().finally(() => this.ending.delete(ending));
    this.ending.add(ending);
    this.thread = undefined;
  }

  private closedError(): Error {
    return new Error(`${this.options.name} is closed.`);
  }
}
