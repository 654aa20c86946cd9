// The emulator's worker thread, as the main thread sees it. Jobs run one after the other, owners take turns, each job
// has a budget of processor time. A job above its budget costs the thread: the next job gets a new one, and each screen
// restores itself there when it is next used.

import { builtFile } from '../../base/workers/built-file.ts';
import { WORKER_PRIORITY, workerProgram } from '../../base/workers/worker-program.ts';
import type { Clock } from '../../base/clock.ts';
import { FairQueue } from '../../base/fair-queue.ts';
import { TimedThread } from '../../base/workers/timed-thread.ts';
import type { JobEnd } from '../../base/workers/timed-thread.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { EmulatorAnswer, EmulatorJob, EmulatorPart } from './emulator-worker.ts';

const PROGRAM = workerProgram(builtFile(import.meta.url, './emulator-worker.js'));

/** The thread was lost, with all terminals in it. */
export class EmulatorLost extends Error {
  /** The event that the job was processing, if this job caused the loss. */
  readonly culprit: number | undefined;

  constructor(culprit: number | undefined, reason: string) {
    super(`The screen's worker had to be replaced: ${reason}.`);
    this.culprit = culprit;
  }
}

interface Task {
  readonly owner: string;
  readonly job: EmulatorJob;
  readonly resolve: (answer: EmulatorAnswer) => void;
  readonly reject: (reason: Error) => void;
}

export interface EmulatorsOptions {
  readonly clock: Clock;
  /** For one job: output that should take three milliseconds, or reading a whole scrollback. */
  readonly budgetMs?: number;
  readonly idleMs?: number;
}

/** For the heap of the thread. Cells are in typed arrays outside the heap. */
const MAX_HEAP_MB = 512;

export class EmulatorThread {
  private readonly clock: Clock;
  private readonly budgetMs: number;
  private readonly idleMs: number;
  private thread: TimedThread<EmulatorJob, EmulatorAnswer> | undefined;
  private readonly queue = new FairQueue<Task>();
  private current: Task | undefined;
  private readonly open = new Set<number>();
  private cancelIdle: (() => void) | undefined;
  private closed = false;
  private readonly ending = new Set<Promise<unknown>>();
  private lastScreen = 0;
  private startedUs = 0;
  private generations = 0;

  constructor(options: EmulatorsOptions) {
    this.clock = options.clock;
    this.budgetMs = options.budgetMs ?? 250;
    this.idleMs = options.idleMs ?? 30_000;
  }

  /** Changes when the thread, with every terminal in it, was lost or ended. */
  get generation(): number {
    return this.generations;
  }

  /** Threads that are being replaced do not count. */
  get active(): boolean {
    return this.thread !== undefined;
  }

  nextScreen(): number {
    this.lastScreen += 1;
    return this.lastScreen;
  }

  ask(job: EmulatorJob, owner: string): Promise<EmulatorAnswer> {
    if (this.closed) return Promise.reject(closedError());
    return new Promise((resolve, reject) => {
      this.queue.push(owner, { owner, job, resolve, reject });
      this.next();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    const tasks = [...(this.current === undefined ? [] : [this.current]), ...this.queue.clear()];
    this.dropThread();
    for (const task of tasks) task.reject(closedError());
    await Promise.all(this.ending);
  }

  private next(): void {
    if (this.current !== undefined) return;
    this.current = this.queue.shift();
    if (this.current === undefined) return;
    this.cancelIdle?.();
    this.thread ??= new TimedThread({
      name: 'holdfast-screen',
      program: PROGRAM,
      maxHeapMb: MAX_HEAP_MB,
      priority: WORKER_PRIORITY,
      onEnd: (end) => this.ended(end),
    });
    const { job } = this.current;
    this.startedUs = this.clock.nowUs();
    const transferred = job.kind === 'feed' ? [...new Set(job.parts.flatMap(bufferOf))] : [];
    this.thread.start(job, this.budgetMs, transferred);
  }

  private ended(end: JobEnd<EmulatorAnswer>): void {
    const task = this.current;
    this.current = undefined;
    if (task) this.queue.charge(task.owner, (this.clock.nowUs() - this.startedUs) / 1000);
    if (end.kind === 'answer') this.answered(task, end.answer);
    else this.lost(task, end);
    this.next();
    if (this.current !== undefined || this.thread === undefined || this.open.size > 0) return;
    this.cancelIdle?.();
    this.cancelIdle = this.clock.after(this.idleMs, () => this.dropThread());
  }

  private answered(task: Task | undefined, answer: EmulatorAnswer): void {
    if (task === undefined) return;
    const { kind, screen } = task.job;
    if (kind === 'open' || (kind === 'restore' && answer.unreadable !== true))
      this.open.add(screen);
    if (kind === 'close') this.open.delete(screen);
    task.resolve(answer);
  }

  private lost(
    task: Task | undefined,
    end: Exclude<JobEnd<EmulatorAnswer>, { kind: 'answer' }>,
  ): void {
    const at = this.thread?.progress ?? 0;
    const reason = end.kind === 'slow' ? 'it needed too long' : end.error.message;
    // The terminals of waiting jobs are gone too: those jobs fail at once and are retried.
    const waiting = this.queue.clear();
    this.dropThread();
    task?.reject(new EmulatorLost(at > 0 ? at : undefined, reason));
    for (const other of waiting) other.reject(new EmulatorLost(undefined, reason));
  }

  private dropThread(): void {
    this.cancelIdle?.();
    this.cancelIdle = undefined;
    this.current = undefined;
    if (this.thread === undefined) return;
    this.generations += 1;
    this.open.clear();
    const ending = this.thread.end().finally(() => this.ending.delete(ending));
    this.ending.add(ending);
    this.thread = undefined;
  }
}

function bufferOf(part: EmulatorPart): ArrayBuffer[] {
  return 'bytes' in part ? [part.bytes.buffer] : [];
}

function closedError(): HoldfastError {
  return new HoldfastError('host_closed', 'The screens are closed.');
}
