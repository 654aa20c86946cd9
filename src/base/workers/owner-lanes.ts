// Two queues for jobs of callers. Every job begins in the first one, for a slice of time. An owner whose job takes longer
// goes to the second one for a while, with all that it has asked: there it meets only others of its kind, on a thread of low
// priority, and its jobs have the whole budget. So nobody else waits for more than a slice (ADR 21).

import {
  JobTakenBack,
  JobTooHeavy,
  TimedQueue,
  type AskOptions,
  type TimedQueueOptions,
} from './timed-queue.ts';

/** Many times what a usual job takes; what others may have to wait for one. */
const SLICE_MS = 25;
/** An owner whose job took longer than a slice is kept apart for so long. */
const APART_MS = 60_000;
const MOST_APART = 1000;
/** Of the second queue's thread: what else the machine does goes first. */
const LOW_PRIORITY = 10;

export class OwnerLanes<Job, Answer> {
  private readonly clock: TimedQueueOptions<Job>['clock'];
  private readonly quick: TimedQueue<Job, Answer>;
  private readonly slow: TimedQueue<Job, Answer>;
  /** Owners that are kept apart, and until when. */
  private readonly apart = new Map<string, number>();

  /** `heavyPerOwner` counts jobs that were refused, not those that went to the second queue. */
  constructor(options: TimedQueueOptions<Job>) {
    this.clock = options.clock;
    const tooHeavy = (owner: string): void => this.keepApart(owner);
    const { heavyPerOwner: _, ...shared } = { ...options, tooHeavy };
    this.quick = new TimedQueue({ ...shared, budgetMs: Math.min(SLICE_MS, options.budgetMs) });
    const name = `${options.name}-slow`;
    this.slow = new TimedQueue({ ...options, tooHeavy, name, priority: LOW_PRIORITY });
  }

  /** True while a thread exists. */
  get active(): boolean {
    return this.quick.active || this.slow.active;
  }

  async ask(job: Job, options: Omit<AskOptions, 'transfer'> = {}): Promise<Answer> {
    const { owner = '' } = options;
    if ((this.apart.get(owner) ?? 0) > this.clock.nowUs()) return this.slow.ask(job, options);
    try {
      return await this.quick.ask(job, options);
    } catch (error) {
      const isSlow = error instanceof JobTooHeavy && !error.outOfMemory;
      if (!isSlow && !(error instanceof JobTakenBack)) throw error;
      return this.slow.ask(job, options);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.quick.close(), this.slow.close()]);
  }

  private keepApart(owner: string): void {
    this.apart.delete(owner);
    this.apart.set(owner, this.clock.nowUs() + APART_MS * 1000);
    const [oldest] = this.apart.keys();
    if (this.apart.size > MOST_APART && oldest !== undefined) this.apart.delete(oldest);
    this.quick.takeBack(owner);
  }
}
