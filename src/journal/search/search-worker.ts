// The search worker runs regular expressions. The main thread terminates it if one takes too long.

import { parentPort, workerData } from 'node:worker_threads';
import { serveJobs } from '../../base/workers/timed-thread.ts';
import { scanLines } from './line-scan.ts';
import type { Find, LineHit, ScanInput } from './line-scan.ts';
import type { RegexPlan } from './search-query.ts';

export interface ScanJob {
  readonly regex: RegexPlan;
  readonly input: ScanInput;
}

export type ScanAnswer =
  | { readonly hits: readonly LineHit[] }
  | {
      readonly problem: 'too_large' | 'too_deep' | 'other';
      readonly message: string;
    };

/**
 * V8 tries a leading ".*" from every character of a line, in quadratic time (0.5 s for 256 KiB in lines of 2 KB). The
 * leftmost match always begins at the start of a run of characters that "." matches, so we try only there.
 */
const RUN_START = '(?:^|(?<=[\\n\\r\\u2028\\u2029]))';

serveJobs(parentPort, workerData, answer);

function answer(job: ScanJob): ScanAnswer {
  try {
    return { hits: scanLines(job.input, finder(job)) };
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    // V8 compiles an expression at its first use, and only then reports that it is too large.
    if (thrown instanceof SyntaxError) return { problem: 'too_large', message };
    return { problem: thrown instanceof RangeError ? 'too_deep' : 'other', message };
  }
}

function finder({ regex }: ScanJob): Find {
  const expression = new RegExp(
    regex.leadingRun ? `${RUN_START}${regex.source}` : regex.source,
    regex.flags,
  );
  const here = new RegExp(regex.source, regex.flags.replace('g', 'y'));
  return (text, from) => {
    const found =
      (regex.leadingRun && from > 0 ? match(here, text, from) : null) ??
      match(expression, text, from);
    return found === null ? undefined : { index: found.index, length: found[0].length };
  };
}

function match(expression: RegExp, text: string, from: number): RegExpExecArray | null {
  expression.lastIndex = from;
  return expression.exec(text);
}
