// The pattern worker: matches a regular expression against a screen's text. The main thread ends it if it takes too
// long.

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
    // V8 compiles an expression on first use, and only then reports that it is too large.
    return { problem: error instanceof Error ? error.message : String(error) };
  }
});
