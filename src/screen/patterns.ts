// Regular expressions of callers, tried on a screen's text in a worker of their own: one that would take for ever costs
// that worker and its own wait, nobody else's screen.

import { builtFile } from '../base/built-file.ts';
import type { Clock } from '../base/clock.ts';
import { JobTooHeavy, TimedQueue } from '../base/timed-queue.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { PatternAnswer, PatternJob } from './pattern-worker.ts';

const BUDGET_MS = 250;
const IDLE_MS = 30_000;
const MAX_HEAP_MB = 64;

export class Patterns {
  private readonly queue: TimedQueue<PatternJob, PatternAnswer>;

  constructor(clock: Clock) {
    this.queue = new TimedQueue({
      clock,
      name: 'holdfast-pattern',
      file: builtFile(import.meta.url, './pattern-worker.js'),
      maxHeapMb: MAX_HEAP_MB,
      budgetMs: BUDGET_MS,
      idleMs: IDLE_MS,
    });
  }

  /** What the expression finds first, or undefined. */
  async find(pattern: string, text: string): Promise<string | undefined> {
    const { found, problem } = await this.queue.ask({ pattern, text }).catch((error: unknown) => {
      if (!(error instanceof JobTooHeavy)) throw error;
      const why = error.outOfMemory ? 'too much memory' : `more than ${BUDGET_MS} ms`;
      const message = `The pattern needs ${why} for ${text.length} characters of text.`;
      throw new HoldfastError('pattern_too_slow', message, { pattern });
    });
    if (problem !== undefined) throw new HoldfastError('pattern_invalid', problem, { pattern });
    return found;
  }

  close(): Promise<void> {
    return this.queue.close();
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
