// A worker thread that does one job at a time and is terminated when a job takes too long. The limit is on processor time,
// so that a busy machine fails no job.

import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { MessagePort, TransferListItem } from 'node:worker_threads';
import { threadId, threadTimeNs } from './thread-time.ts';

export type JobEnd<Answer> =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'slow' }
  | { readonly kind: 'failed'; readonly error: Error; readonly outOfMemory: boolean };

/**
 * Shared memory about the job begun last: [0] its number, [1] monotonic time at its beginning, [2] processor time of the
 * thread at its beginning, [3] thread id, [4] progress of the job in its own unit, [5] nice value for the thread.
 */
type Begun = BigInt64Array<SharedArrayBuffer>;
const BEGUN_BYTES = 48;

/** A worker that has not begun after this long has failed. */
const START_BUDGET_MS = 30_000;
/** A starved thread gets this many budgets of wall time: a new thread would get no more of a busy machine. */
const PATIENCE = 60;

export interface TimedThreadOptions<Answer> {
  readonly name: string;
  /** Made by `workerProgram`. */
  readonly program: URL;
  /** Heap of the thread. */
  readonly maxHeapMb: number;
  /** Nice value; 0, the default, is the program's own. */
  readonly priority?: number;
  /** Called when a job ends. After anything but an answer the thread cannot be used again. */
  readonly onEnd: (end: JobEnd<Answer>) => void;
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
      // The worker does not get the main program's options (loaders, inspectors).
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

  /** The last reported progress of the running job. */
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
    // Timers run first in a turn of the loop. Wait until the poll phase has delivered an answer that is already there.
    const check = (): void => void setImmediate(judge);
    this.timer = setTimeout(check, budgetMs);
  }

  async end(): Promise<void> {
    this.running = false;
    clearTimeout(this.timer);
    this.worker.removeAllListeners();
    // An error during termination changes nothing.
    this.worker.on('error', () => undefined);
    await this.worker.terminate();
  }

  /** Processor time spent on the job; wall time if the kernel does not report it; at least wall time / PATIENCE. */
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
    this.options.onEnd(end);
  }
}

/** The worker's side: answers each job. `progress` reports how far the job is. */
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
  // On Linux setPriority with a thread id changes only that thread.
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
