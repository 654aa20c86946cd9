// A worker thread that does one job at a time and is ended when a job takes too long. What counts is the time the thread
// has really worked on it, so that a busy machine condemns nobody.

import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { MessagePort, TransferListItem } from 'node:worker_threads';
import { threadId, threadTimeNs } from './thread-time.ts';

export type JobEnd<Answer> =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'slow' }
  | { readonly kind: 'failed'; readonly error: Error; readonly outOfMemory: boolean };

/**
 * Memory both threads see, about what was begun last: [0] number of the job, [1] time on the monotonic clock, [2] time of
 * the thread, [3] its number, [4] how far into the job it is, in the job's own terms, [5] the priority it is to take.
 */
type Begun = BigInt64Array<SharedArrayBuffer>;
const BEGUN_BYTES = 48;

/** A worker that has not even begun after this long never will. */
const START_BUDGET_MS = 30_000;
/** A thread that hardly runs has this many budgets on the clock: the next one would get no more of a busy machine. */
const PATIENCE = 60;

export interface TimedThreadOptions<Answer> {
  readonly name: string;
  /** Made by `workerProgram`. */
  readonly program: URL;
  /** Heap of the thread. */
  readonly maxHeapMb: number;
  /** As `nice` counts; 0, the default, is the program's own. */
  readonly priority?: number;
  /** Told how each job ended; after anything but an answer the thread is of no more use. */
  readonly tell: (end: JobEnd<Answer>) => void;
}

interface Envelope<Job> {
  readonly number: number;
  readonly job: Job;
}

/** Keeps the program alive only while a job runs. */
export class TimedThread<Job, Answer> {
  private readonly worker: Worker;
  private readonly begun: Begun = new BigInt64Array(new SharedArrayBuffer(BEGUN_BYTES));
  private readonly options: TimedThreadOptions<Answer>;
  private last = 0;
  private running = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(options: TimedThreadOptions<Answer>) {
    this.options = options;
    Atomics.store(this.begun, 5, BigInt(options.priority ?? 0));
    this.worker = new Worker(options.program, {
      name: options.name,
      workerData: this.begun,
      // Options of the main program (loaders, inspectors) are not for the worker.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: options.maxHeapMb, maxYoungGenerationSizeMb: 32 },
    });
    this.worker.on('message', (answer: Answer) => this.finish({ kind: 'answer', answer }));
    this.worker.on('error', (error: Error & { code?: string }) => {
      const outOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      this.finish({ kind: 'failed', error, outOfMemory });
    });
    this.worker.on('exit', () => this.finish(failure(`The thread ${options.name} ended.`), true));
    this.worker.unref();
  }

  /** How far the running job had come, as it told last. */
  get progress(): number {
    return Number(Atomics.load(this.begun, 4));
  }

  start(job: Job, budgetMs: number, transfer: readonly TransferListItem[] = []): void {
    this.last += 1;
    this.running = true;
    const number = this.last;
    Atomics.store(this.begun, 4, 0n);
    this.worker.ref();
    this.worker.postMessage({ number, job } satisfies Envelope<Job>, transfer);
    const postedAt = process.hrtime.bigint();
    const judge = (): void => {
      if (!this.running || this.last !== number) return;
      const hasBegun = Atomics.load(this.begun, 0) === BigInt(number);
      const leftMs = hasBegun ? budgetMs - this.spentMs() : START_BUDGET_MS - msSince(postedAt);
      if (leftMs > 0) this.timer = setTimeout(check, Math.min(leftMs, budgetMs));
      else if (hasBegun) this.finish({ kind: 'slow' });
      else this.finish(failure(`The thread ${this.options.name} did not start.`));
    };
    // Timers come first in a turn of the loop: an answer that is already there gets its chance before the verdict.
    const check = (): void => void setImmediate(judge);
    this.timer = setTimeout(check, budgetMs);
  }

  async end(): Promise<void> {
    this.running = false;
    clearTimeout(this.timer);
    this.worker.removeAllListeners();
    // One that fails while it is being ended is ended all the same.
    this.worker.on('error', () => undefined);
    await this.worker.terminate();
  }

  /** On the job that was begun: what the thread has worked, or its share of the clock when that is more or all we know. */
  private spentMs(): number {
    const [, clock = 0n, time = 0n, thread = 0n] = this.begun;
    const now = time > 0n ? threadTimeNs(Number(thread)) : undefined;
    if (now === undefined) return msSince(clock);
    return Math.max(Number(now - time) / 1e6, msSince(clock) / PATIENCE);
  }

  private finish(end: JobEnd<Answer>, always = false): void {
    if (!this.running && !always) return;
    this.running = false;
    clearTimeout(this.timer);
    this.worker.unref();
    this.options.tell(end);
  }
}

/** The worker's side: answers each job as it comes. `progress` says how far into the job it is. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the port cannot say what comes through it
export function serveJobs<Job, Answer>(
  port: MessagePort | null,
  begun: unknown,
  answer: (job: Job, progress: (at: number) => void) => Answer,
  transfer: (answer: Answer) => readonly TransferListItem[] = () => [],
): void {
  const shared = begun as Begun;
  const thread = threadId();
  Atomics.store(shared, 3, BigInt(thread));
  const priority = Number(Atomics.load(shared, 5));
  // To Linux a thread's number is a process's: only this thread is meant.
  if (priority > 0 && thread > 0) setPriority(thread, priority);
  const progress = (at: number): void => void Atomics.store(shared, 4, BigInt(at));
  port?.on('message', ({ number, job }: Envelope<Job>) => {
    Atomics.store(shared, 1, process.hrtime.bigint());
    Atomics.store(shared, 2, threadTimeNs(thread) ?? 0n);
    Atomics.store(shared, 0, BigInt(number));
    const answered = answer(job, progress);
    port.postMessage(answered, transfer(answered));
  });
}

function failure(message: string): { kind: 'failed'; error: Error; outOfMemory: false } {
  return { kind: 'failed', error: new Error(message), outOfMemory: false };
}

function msSince(clock: bigint): number {
  return Number(process.hrtime.bigint() - clock) / 1e6;
}
