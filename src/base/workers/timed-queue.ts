// A fair queue of jobs for one worker thread. If a job takes too long or fails, the thread is terminated and only that job
// is rejected, unless the thread has state; the next job gets a new thread. An idle thread is terminated after a while.

import type { TransferListItem } from 'node:worker_threads';
import type { CancelSignal } from '../cancel-signal.ts';
import type { Clock } from '../clock.ts';
import { FairQueue } from '../fair-queue.ts';
import { TimedThread } from './timed-thread.ts';
import type { JobEnd } from './timed-thread.ts';

/** What the thread keeps between jobs, and loses when it is terminated. */
export interface ThreadState {
  /** While it is, an idle thread stays. */
  readonly isUsed: () => boolean;
  readonly dropped: () => void;
  /** The error of the job that cost the thread, which had come to `progress`, and of those that waited, which had not begun. */
  readonly lost: (reason: string, progress?: number) => Error;
}

export interface TimedQueueOptions<Job> {
  readonly clock: Clock;
  readonly name: string;
  readonly program: URL;
  readonly maxHeapMb: number;
  /** Processor time for one job. */
  readonly budgetMs: number;
  readonly idleMs: number;
  /** Nice value of the thread; 0 is the program's own. */
  readonly priority?: number;
  /** Makes the message for the thread when the job begins. */
  readonly prepare?: (job: Job) => { readonly job: Job; readonly transfer: TransferListItem[] };
  /** After this many too heavy jobs within ten seconds, `bounded` jobs of the owner are refused. */
  readonly heavyPerOwner?: number;
  /** Called with the owner of a too heavy job before the job is rejected, also if its caller has aborted. */
  readonly tooHeavy?: (owner: string) => void;
  readonly state?: ThreadState;
}

export interface AskOptions {
  /** Owners are served fairly by the time that their jobs take. */
  readonly owner?: string;
  readonly transfer?: readonly TransferListItem[];
  readonly signal?: CancelSignal | undefined;
  readonly bounded?: boolean;
}

/** The job took too long or too much memory. */
export class JobTooHeavy extends Error {
  readonly outOfMemory: boolean;

  constructor(name: string, outOfMemory: boolean) {
    super(`A job of ${name} needed too much ${outOfMemory ? 'memory' : 'time'}.`);
    this.outOfMemory = outOfMemory;
  }
}

/** Too many recent jobs of this owner were too heavy. */
export class OwnerTooHeavy extends Error {}

/** Removed from the queue before it began. */
export class JobTakenBack extends Error {}

/** The caller aborted. A job that has begun continues; its answer is dropped. */
export class JobAbandoned extends Error {}

const HEAVY_PERIOD_US = 10_000_000;

interface Task<Job, Answer> {
  readonly owner: string;
  readonly job: Job;
  readonly transfer: readonly TransferListItem[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: Error) => void;
}

export class TimedQueue<Job, Answer> {
  private readonly options: TimedQueueOptions<Job>;
  private thread: TimedThread<Job, Answer> | undefined;
  private readonly queue = new FairQueue<Task<Job, Answer>>();
  private current: Task<Job, Answer> | undefined;
  private begunUs = 0;
  private cancelIdle: (() => void) | undefined;
  private closed = false;
  private readonly ending = new Set<Promise<unknown>>();
  /** Times of too heavy jobs by owner, oldest first. */
  private readonly heavy = new Map<string, number[]>();

  constructor(options: TimedQueueOptions<Job>) {
    this.options = options;
  }

  /** True while a thread exists. */
  get active(): boolean {
    return this.thread !== undefined;
  }

  ask(
    job: Job,
    { owner = '', transfer = [], signal, bounded = false }: AskOptions = {},
  ): Promise<Answer> {
    if (this.closed) return Promise.reject(this.closedError());
    if (signal?.aborted === true) return Promise.reject(new JobAbandoned());
    if (bounded && this.isTooHeavy(owner)) return Promise.reject(new OwnerTooHeavy());
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        signal?.removeEventListener('abort', abort);
        how();
      };
      const task: Task<Job, Answer> = {
        owner,
        job,
        transfer,
        resolve: (answer) => settle(() => resolve(answer)),
        reject: (reason) => settle(() => reject(reason)),
      };
      const abort = (): void => {
        this.queue.delete(owner, task);
        task.reject(new JobAbandoned());
      };
      signal?.addEventListener('abort', abort);
      this.queue.push(owner, task);
      this.next();
    });
  }

  /** Rejects this owner's waiting jobs with JobTakenBack. */
  takeBack(owner: string): void {
    for (const task of this.queue.clear(owner)) task.reject(new JobTakenBack());
  }

  /** Rejects unfinished jobs and resolves when every thread has ended. */
  async close(): Promise<void> {
    this.closed = true;
    const tasks = [...(this.current === undefined ? [] : [this.current]), ...this.queue.clear()];
    this.dropThread();
    for (const task of tasks) task.reject(this.closedError());
    await Promise.all(this.ending);
  }

  private next(): void {
    if (this.current !== undefined) return;
    const task = (this.current = this.queue.shift());
    if (task === undefined) return;
    this.cancelIdle?.();
    const { budgetMs, prepare, clock } = this.options;
    this.thread ??= this.newThread();
    this.begunUs = clock.nowUs();
    const { job, transfer } = prepare?.(task.job) ?? task;
    this.thread.start(job, budgetMs, transfer);
  }

  private ended(end: JobEnd<Answer>): void {
    const task = this.current;
    this.current = undefined;
    const tookMs = (this.options.clock.nowUs() - this.begunUs) / 1000;
    if (task) this.queue.charge(task.owner, tookMs);
    if (end.kind === 'answer') task?.resolve(end.answer);
    else if (this.options.state) this.loseState(this.options.state, task, end);
    else {
      this.dropThread();
      const heavy = end.kind === 'slow' || end.outOfMemory;
      if (heavy && task) {
        this.noteHeavy(task.owner);
        this.options.tooHeavy?.(task.owner);
        // Start the next thread now, so that the next job does not wait for it.
        this.thread = this.newThread();
      }
      task?.reject(heavy ? new JobTooHeavy(this.options.name, end.kind !== 'slow') : end.error);
    }
    this.next();
    if (this.current !== undefined || this.thread === undefined) return;
    this.cancelIdle?.();
    this.cancelIdle = this.options.clock.after(this.options.idleMs, () => {
      if (this.options.state?.isUsed() !== true) this.dropThread();
    });
  }

  /** What waiting jobs rely on is gone: they fail at once, too. */
  private loseState(
    state: ThreadState,
    task: Task<Job, Answer> | undefined,
    end: Exclude<JobEnd<Answer>, { kind: 'answer' }>,
  ): void {
    const reason = end.kind === 'slow' ? 'it needed too long' : end.error.message;
    const progress = this.thread?.progress ?? 0;
    const waiting = this.queue.clear();
    this.dropThread();
    task?.reject(state.lost(reason, progress));
    for (const other of waiting) other.reject(state.lost(reason));
  }

  private newThread(): TimedThread<Job, Answer> {
    return new TimedThread({ ...this.options, onEnd: (end) => this.ended(end) });
  }

  private noteHeavy(owner: string): void {
    if (this.options.heavyPerOwner === undefined) return;
    this.heavy.set(owner, [...(this.heavy.get(owner) ?? []), this.options.clock.nowUs()]);
    for (const name of this.heavy.keys()) this.isTooHeavy(name);
  }

  private isTooHeavy(owner: string): boolean {
    const { heavyPerOwner = Infinity, clock } = this.options;
    const since = clock.nowUs() - HEAVY_PERIOD_US;
    const recent = this.heavy.get(owner)?.filter((atUs) => atUs > since) ?? [];
    if (recent.length > 0) this.heavy.set(owner, recent);
    else this.heavy.delete(owner);
    return recent.length >= heavyPerOwner;
  }

  private dropThread(): void {
    this.cancelIdle?.();
    this.cancelIdle = undefined;
    this.current = undefined;
    if (this.thread === undefined) return;
    this.options.state?.dropped();
    const ending = this.thread.end().finally(() => this.ending.delete(ending));
    this.ending.add(ending);
    this.thread = undefined;
  }

  private closedError(): Error {
    return new Error(`${this.options.name} is closed.`);
  }
}
