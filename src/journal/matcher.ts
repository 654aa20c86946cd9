// The matcher: answers searches without ever holding up the main thread. Plain text is matched here, a block per turn of
// the event loop; regular expressions run in one worker thread, block by block in turn for all searches, and a block that
// takes too long costs its own search and the worker, nothing else.

import { builtFile } from '../base/built-file.ts';
import type { Clock } from '../base/clock.ts';
import { TimedThread } from '../base/timed-thread.ts';
import type { JobEnd } from '../base/timed-thread.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { SearchResult } from '../protocol/views.ts';
import type { ByteSource } from './byte-source.ts';
import { scanLines } from './line-scan.ts';
import type { LineHit, ScanInput, TextFinder } from './line-scan.ts';
import { abortedError, Search } from './search.ts';
import type { Scan } from './search.ts';
import { planSearch } from './search-query.ts';
import type { RegexPlan, SearchQuery } from './search-query.ts';
import type { ScanAnswer, ScanJob } from './search-worker.ts';

export interface MatcherOptions {
  /** For the time after which an idle worker leaves. */
  readonly clock: Clock;
  /** Processor time for one block of at most 256 KiB, which usually takes a few milliseconds. */
  readonly blockBudgetMs?: number;
  readonly idleMs?: number;
}

interface Task extends ScanJob {
  readonly resolve: (hits: readonly LineHit[]) => void;
  readonly reject: (reason: Error) => void;
}

export class Matcher {
  private readonly clock: Clock;
  private readonly blockBudgetMs: number;
  private readonly idleMs: number;
  private worker: TimedThread<ScanJob, ScanAnswer> | undefined;
  private readonly queue: Task[] = [];
  private current: Task | undefined;
  private lastId = 0;
  private cancelIdle: (() => void) | undefined;
  private closed = false;
  private readonly ending = new Set<Promise<unknown>>();

  constructor(options: MatcherOptions) {
    this.clock = options.clock;
    this.blockBudgetMs = options.blockBudgetMs ?? 250;
    this.idleMs = options.idleMs ?? 30_000;
  }

  /** True while a worker thread exists. */
  get active(): boolean {
    return this.worker !== undefined;
  }

  async search(
    source: ByteSource,
    query: SearchQuery,
    signal?: AbortSignal,
  ): Promise<SearchResult> {
    if (this.closed) throw closedError();
    const plan = planSearch(query);
    const { finder } = plan;
    const scan: Scan =
      finder.kind === 'text' ? textScan(finder.text) : (input) => this.scan(finder, input, signal);
    return new Search(source, plan, scan).run(signal);
  }

  /** Ends the worker; searches that need it fail. Resolves when every thread is gone. */
  async close(): Promise<void> {
    this.closed = true;
    const tasks = [...(this.current === undefined ? [] : [this.current]), ...this.queue.splice(0)];
    this.dropWorker();
    for (const task of tasks) task.reject(closedError());
    await Promise.all(this.ending);
  }

  private scan(
    regex: RegexPlan,
    input: ScanInput,
    signal: AbortSignal | undefined,
  ): Promise<readonly LineHit[]> {
    if (this.closed) return Promise.reject(closedError());
    if (signal?.aborted === true) return Promise.reject(abortedError());
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        const at = this.queue.findIndex((task) => task.id === id);
        if (at >= 0) this.queue.splice(at, 1);
        // A block that is being matched is left to end by itself: at most one budget.
        settle(() => reject(abortedError()));
      };
      const settle = (how: () => void): void => {
        signal?.removeEventListener('abort', abort);
        how();
      };
      this.queue.push({
        id,
        regex,
        input,
        resolve: (hits) => settle(() => resolve(hits)),
        reject: (reason) => settle(() => reject(reason)),
      });
      signal?.addEventListener('abort', abort, { once: true });
      this.next();
    });
  }

  private next(): void {
    if (this.current !== undefined) return;
    this.current = this.queue.shift();
    if (this.current === undefined) return;
    this.cancelIdle?.();
    this.worker ??= new TimedThread({
      name: 'holdfast-search',
      file: builtFile(import.meta.url, './search-worker.js'),
      maxHeapMb: 128,
      tell: (end) => this.ended(end),
    });
    const { id, regex, input } = this.current;
    // A copy of its own: a view into a larger buffer would carry the whole of it along.
    const bytes = new Uint8Array(input.bytes);
    this.worker.start({ id, regex, input: { ...input, bytes } }, this.blockBudgetMs, [
      bytes.buffer,
    ]);
  }

  private ended(end: JobEnd<ScanAnswer>): void {
    const task = this.current;
    this.current = undefined;
    if (end.kind === 'answer' && 'hits' in end.answer) task?.resolve(end.answer.hits);
    else if (task !== undefined) task.reject(this.problem(task, end));
    if (end.kind !== 'answer') this.dropWorker();
    this.next();
    if (this.current !== undefined || this.worker === undefined) return;
    this.cancelIdle?.();
    this.cancelIdle = this.clock.after(this.idleMs, () => this.dropWorker());
  }

  private problem(task: Task, end: JobEnd<ScanAnswer>): Error {
    const details = { pattern: task.regex.source };
    const slow = (message: string): Error =>
      new HoldfastError('pattern_too_slow', message, details);
    if (end.kind === 'slow') {
      return slow(
        `The pattern took more than ${this.blockBudgetMs} ms for ${task.input.bytes.length} bytes of text.`,
      );
    }
    if (end.kind === 'failed')
      return end.outOfMemory ? slow('The pattern needs too much memory.') : end.error;
    if ('hits' in end.answer) return new Error('A search worker answered twice.');
    const { problem, message } = end.answer;
    if (problem === 'too_large') return new HoldfastError('pattern_invalid', message, details);
    return problem === 'too_deep'
      ? slow(`The pattern needs too much memory: ${message}`)
      : new Error(message);
  }

  private dropWorker(): void {
    this.cancelIdle?.();
    this.cancelIdle = undefined;
    this.current = undefined;
    if (this.worker === undefined) return;
    const ending = this.worker.end().finally(() => this.ending.delete(ending));
    this.ending.add(ending);
    this.worker = undefined;
  }
}

function textScan(finder: TextFinder): Scan {
  return (input) =>
    Promise.resolve(finder.mayContain(input.bytes, input.raw) ? scanLines(input, finder.find) : []);
}

function closedError(): HoldfastError {
  return new HoldfastError('host_closed', 'The matcher is closed.');
}
