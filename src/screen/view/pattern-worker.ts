// The pattern worker: tries a regular expression on a screen's text, and is ended from outside when it takes too long.

import { parentPort, workerData } from 'node:worker_threads';
import { serveJobs } from '../../base/workers/timed-thread.ts';

export interface PatternJob {
  readonly pattern: string;
  readonly text: string;
}

export interface PatternAnswer {
  readonly found?: string | undefined;
  readonly problem?: string;
}

serveJobs(parentPort, workerData, ({ pattern, text }: PatternJob): PatternAnswer => {
  try {
    return { found: new RegExp(pattern).exec(text)?.[0] };
  } catch (error) {
    // V8 translates an expression when it is first used, and finds only then that it is too large.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
});
