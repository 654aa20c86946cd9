// Runs searches without blocking the main thread. Plain text is matched here, one block per turn of the event loop. Regular
// expressions run in a worker thread, block by block, fairly between owners. A block that takes too long ends its own search
// and the worker; the next searches of its owner run in a second worker.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { builtFile } from '../../base/workers/built-file.ts';
import { workerProgram } from '../../base/workers/worker-program.ts';
import type { Clock } from '../../base/clock.ts';
import { OwnerLanes } from '../../base/workers/owner-lanes.ts';
import { JobAbandoned, JobTooHeavy, OwnerTooHeavy } from '../../base/workers/timed-queue.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner } from '../../protocol/host-api.ts';
import type { SearchResult } from '../../protocol/views.ts';
import type { ByteSource } from './byte-source.ts';
import { scanLines } from './line-scan.ts';
import type { LineHit, ScanInput, TextFinder } from './line-scan.ts';
import { abortedError, Search } from './search.ts';
import type { Scan } from './search.ts';
import { planSearch } from './search-query.ts';
import type { RegexPlan, SearchQuery } from './search-query.ts';
import type { ScanAnswer, ScanJob } from './search-worker.ts';

const PROGRAM = workerProgram(builtFile(import.meta.url, './search-worker.js'));

export interface MatcherOptions {
  /** For the idle timeout of the worker. */
  readonly clock: Clock;
  /** Processor time for one block of at most 256 KiB, which usually takes a few milliseconds. */
  readonly blockBudgetMs?: number;
  readonly idleMs?: number;
}

export interface SearchCaller {
  /** Charged for the time that the pattern takes. */
  readonly owner?: Owner;
  readonly signal?: CancelSignal | undefined;
  /** Refuse it while too many recent patterns of the owner were too slow. Not set for a parked wait. */
  readonly bounded?: boolean;
}

/** Too slow patterns of one owner within ten seconds: each uses a processor for a quarter of a second. */
const SLOW_PATTERNS = 8;

export class Matcher {
  private readonly blockBudgetMs: number;
  private readonly worker: OwnerLanes<ScanJob, ScanAnswer>;
  private closed = false;

  constructor({ clock, blockBudgetMs = 250, idleMs = 30_000 }: MatcherOptions) {
    this.blockBudgetMs = blockBudgetMs;
    this.worker = new OwnerLanes({
      clock,
      name: 'holdfast-search',
      program: PROGRAM,
      maxHeapMb: 128,
      budgetMs: blockBudgetMs,
      idleMs,
      heavyPerOwner: SLOW_PATTERNS,
      prepare: ({ regex, input }) => {
        // A copy: a view would transfer the whole buffer behind it.
        const bytes = new Uint8Array(input.bytes);
        return { job: { regex, input: { ...input, bytes } }, transfer: [bytes.buffer] };
      },
    });
  }

  /** True while a worker thread exists. */
  get active(): boolean {
    return this.worker.active;
  }

  async search(
    source: ByteSource,
    query: SearchQuery,
    caller: SearchCaller = {},
  ): Promise<SearchResult> {
    if (this.closed) throw closedError();
    const plan = planSearch(query);
    const { finder } = plan;
    const scan: Scan =
      finder.kind === 'text' ? textScan(finder.text) : (input) => this.scan(finder, input, caller);
    return new Search(source, plan, scan).run(caller.signal);
  }

  /** Terminates the worker; searches that need it fail. Resolves when every thread has ended. */
  async close(): Promise<void> {
    this.closed = true;
    await this.worker.close();
  }

  private async scan(
    regex: RegexPlan,
    input: ScanInput,
    caller: SearchCaller,
  ): Promise<readonly LineHit[]> {
    let answer: ScanAnswer;
    try {
      answer = await this.worker.ask({ regex, input }, caller);
    } catch (error) {
      throw this.problem(error, regex, input);
    }
    if ('hits' in answer) return answer.hits;
    const details = { pattern: regex.source };
    const { problem, message } = answer;
    if (problem === 'too_large') throw new HoldfastError('pattern_invalid', message, details);
    if (problem === 'other') throw new Error(message);
    const slow = `The pattern needs too much memory: ${message}`;
    throw new HoldfastError('pattern_too_slow', slow, details);
  }

  private problem(error: unknown, regex: RegexPlan, input: ScanInput): unknown {
    if (this.closed) return closedError();
    if (error instanceof JobAbandoned) return abortedError();
    if (error instanceof OwnerTooHeavy) {
      const problem = `${SLOW_PATTERNS} patterns of this owner were too slow within ten seconds.`;
      return new HoldfastError('limit_reached', problem);
    }
    if (!(error instanceof JobTooHeavy)) return error;
    const message = error.outOfMemory
      ? 'The pattern needs too much memory.'
      : `The pattern took more than ${this.blockBudgetMs} ms for ${input.bytes.length} bytes of text.`;
    return new HoldfastError('pattern_too_slow', message, { pattern: regex.source });
  }
}

function textScan(finder: TextFinder): Scan {
  return (input) =>
    Promise.resolve(finder.mayContain(input.bytes, input.raw) ? scanLines(input, finder.find) : []);
}

function closedError(): HoldfastError {
  return new HoldfastError('host_closed', 'The matcher is closed.');
}
