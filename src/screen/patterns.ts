// Regular expressions of callers, tried on a screen's text in a worker of their own: one that would take for ever costs
// that worker and its own wait, nobody else's screen.

import { builtFile } from '../base/built-file.ts';
import type { Clock } from '../base/clock.ts';
import { TimedThread } from '../base/timed-thread.ts';
import type { JobEnd } from '../base/timed-thread.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { PatternAnswer, PatternJob } from './pattern-worker.ts';

interface Task {
  readonly job: PatternJob;
  readonly resolve: (found: string | undefined) => void;
  readonly reject: (reason: Error) => void;
}

const BUDGET_MS = 250;
const IDLE_MS = 30_000;
const MAX_HEAP_MB = 64;

export class Patterns {
  private readonly clock: Clock;
  private thread: TimedThread<PatternJob, PatternAnswer> | undefined;
  private readonly queue: Task[] = [];
  private current: Task | undefined;
  private cancelIdle: (() => void) | undefined;
  private readonly ending = new Set<Promise<unknown>>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** What the expression finds first, or undefined. */
  find(pattern: string, text: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      this.queue.push({ job: { pattern, text }, resolve, reject });
      this.next();
    });
  }

  async close(): Promise<void> {
    const tasks = [...(this.current === undefined ? [] : [this.current]), ...this.queue.splice(0)];
    this.dropThread();
    for (const { reject } of tasks) reject(new HoldfastError('host_closed', 'The screens are closed.'));
    await Promise.all(this.ending);
  }

  private next(): void {
    if (this.current !== undefined) return;
    this.current = this.queue.shift();
    if (this.current === undefined) return;
    this.cancelIdle?.();
    this.thread ??= new TimedThread({
      name: 'holdfast-pattern',
      file: builtFile(import.meta.url, './pattern-worker.js'),
      maxHeapMb: MAX_HEAP_MB,
      tell: (end) => this.ended(end),
    });
    this.thread.start(this.current.job, BUDGET_MS);
  }

  private ended(end: JobEnd<PatternAnswer>): void {
    const task = this.current;
    this.current = undefined;
    if (end.kind !== 'answer') this.dropThread();
    if (end.kind === 'answer' && end.answer.problem === undefined) task?.resolve(end.answer.found);
    else task?.reject(problem(task.job, end));
    this.next();
    if (this.current !== undefined || this.thread === undefined) return;
    this.cancelIdle?.();
    this.cancelIdle = this.clock.after(IDLE_MS, () => this.dropThread());
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
}

/** Refuses an expression that is none, before anything waits for it. */
export function checkPattern(pattern: string): void {
  try {
    RegExp(pattern);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new HoldfastError('pattern_invalid', reason, { pattern });
  }
}

function problem({ pattern, text }: PatternJob, end: JobEnd<PatternAnswer>): Error {
  const details = { pattern };
  if (end.kind === 'answer')
    return new HoldfastError('pattern_invalid', end.answer.problem ?? '', details);
  if (end.kind === 'failed' && !end.outOfMemory) return end.error;
  const why = end.kind === 'slow' ? `more than ${BUDGET_MS} ms` : 'too much memory';
  return new HoldfastError(
    'pattern_too_slow',
    `The pattern needs ${why} for ${text.length} characters of text.`,
    details,
  );
}
