// Two queues for jobs. Every job begins in the first one, with a short time slice. When a job exceeds it, its owner's jobs
// go to the second queue for a while, on a low-priority thread with the whole budget. So other owners wait for at most one
// slice (ADR 21).

import {
  JobTakenBack,
  JobTooHeavy,
  TimedQueue,
  type AskOptions,
  type TimedQueueOptions,
} from './timed-queue.ts';

/** Many times what a usual job takes; the longest that one owner delays the others. */
const SLICE_MS = 25;
/** How long an owner stays in the second queue. */
const APART_MS = 60_000;
const MOST_APART = 1000;
/** Nice value of the second queue's thread. */
const LOW_PRIORITY = 10;

export class OwnerLanes<Job, Answer> {
  private readonly clock: TimedQueueOptions<Job>['clock'];
  private readonly fast: TimedQueue<Job, Answer>;
  private readonly slow: TimedQueue<Job, Answer>;
  /** Owners in the second queue, and until when. */
  private readonly apart = new Map<string, number>();

  /** `heavyPerOwner` counts jobs that the second queue rejected. */
  constructor(options: TimedQueueOptions<Job>) {
    this.clock = options.clock;
    const tooHeavy = (owner: string): void => this.keepApart(owner);
    const { heavyPerOwner: _, ...shared } = { ...options, tooHeavy };
    this.fast = new TimedQueue({ ...shared, budgetMs: Math.min(SLICE_MS, options.budgetMs) });
    const name = `${options.name}-slow`;
    this.slow = new TimedQueue({ ...options, tooHeavy, name, priority: LOW_PRIORITY });
  }

  /** True while a thread exists. */
  get active(): boolean {
    return this.fast.active || this.slow.active;
  }

  async ask(job: Job, options: Omit<AskOptions, 'transfer'> = {}): Promise<Answer> {
    const { owner = '' } = options;
    if ((this.apart.get(owner) ?? 0) > this.clock.nowUs()) return this.slow.ask(job, options);
    try {
      return await this.fast.ask(job, options);
    } catch (error) {
      const isSlow = error instanceof JobTooHeavy && !error.outOfMemory;
      if (!isSlow && !(error instanceof JobTakenBack)) throw error;
      return this.slow.ask(job, options);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.fast.close(), this.slow.close()]);
  }

  private keepApart(owner: string): void {
    this.apart.delete(owner);
    this.apart.set(owner, this.clock.nowUs() + APART_MS * 1000);
    const [oldest] = this.apart.keys();
    if (this.apart.size > MOST_APART && oldest !== undefined) this.apart.delete(oldest);
    this.fast.takeBack(owner);
  }
}
