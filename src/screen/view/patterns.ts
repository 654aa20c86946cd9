// Matches callers' regular expressions against a screen's text in a worker. A catastrophic expression costs only that
// worker and its own wait. Owners take turns, and after a slow expression an owner gets a separate worker.

import { builtFile } from '../../base/workers/built-file.ts';
import { workerProgram } from '../../base/workers/worker-program.ts';
import type { Clock } from '../../base/clock.ts';
import { OwnerLanes } from '../../base/workers/owner-lanes.ts';
import { JobTooHeavy } from '../../base/workers/timed-queue.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { PatternAnswer, PatternJob } from './pattern-worker.ts';

const PROGRAM = workerProgram(builtFile(import.meta.url, './pattern-worker.js'));

const BUDGET_MS = 250;
const IDLE_MS = 30_000;
const MAX_HEAP_MB = 64;

export class Patterns {
  private readonly lanes: OwnerLanes<PatternJob, PatternAnswer>;

  constructor(clock: Clock) {
    this.lanes = new OwnerLanes({
      clock,
      name: 'holdfast-pattern',
      program: PROGRAM,
      maxHeapMb: MAX_HEAP_MB,
      budgetMs: BUDGET_MS,
      idleMs: IDLE_MS,
    });
  }

  /** The first match, or undefined. */
  async find(pattern: string, text: string, owner: string): Promise<string | undefined> {
    const { found, problem } = await this.lanes
      .ask({ pattern, text }, { owner })
      .catch((error: unknown) => {
        if (!(error instanceof JobTooHeavy)) throw error;
        const why = error.outOfMemory ? 'too much memory' : `more than ${BUDGET_MS} ms`;
        const message = `The pattern needs ${why} for ${text.length} characters of text.`;
        throw new HoldfastError('pattern_too_slow', message, { pattern });
      });
    if (problem !== undefined) throw new HoldfastError('pattern_invalid', problem, { pattern });
    return found;
  }

  close(): Promise<void> {
    return this.lanes.close();
  }
}

/** Refuses an invalid expression before anything waits for it. */
export function checkPattern(pattern: string): void {
  try {
    RegExp(pattern);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new HoldfastError('pattern_invalid', reason, { pattern });
  }
}
