// Watches processes for a client that is notified: new output of subscribed processes, and the exit of processes in the
// background. One wait per process, cancelled when the client disconnects.

import type { Api } from '../../client/api.ts';
import type { Clock } from '../../base/clock.ts';
import { pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { ProcessInfo } from '../../protocol/process.ts';

export interface ProcessWatchOptions {
  readonly connect: () => Promise<Api>;
  readonly clock: Clock;
  readonly outputGrew: (id: string) => void;
  readonly ended: (process: ProcessInfo) => void;
  readonly report: (error: unknown) => void;
  /** New output within this time is reported once. */
  readonly coalesceMs?: number;
}

/** A model reads no faster. */
const COALESCE_MS = 1000;

export class ProcessWatch {
  private readonly options: ProcessWatchOptions;
  private readonly growths = new Map<string, AbortController>();
  private readonly ends = new Set<string>();
  private readonly closing = new AbortController();

  constructor(options: ProcessWatchOptions) {
    this.options = options;
  }

  /** Throws `not_found` if there is no such process. */
  async watchGrowth(id: string): Promise<void> {
    if (this.growths.has(id)) return;
    const stop = new AbortController();
    this.growths.set(id, stop);
    try {
      const api = await this.options.connect();
      const { seq } = await api.get(id);
      void this.followGrowth(api, { id, after: seq, stop: stop.signal });
    } catch (error) {
      this.growths.delete(id);
      throw error;
    }
  }

  unwatchGrowth(id: string): void {
    this.growths.get(id)?.abort();
    this.growths.delete(id);
  }

  /** The exit is reported once, however often this is called. */
  watchEnd(id: string): void {
    if (this.ends.has(id)) return;
    this.ends.add(id);
    void this.followEnd(id);
  }

  close(): void {
    this.closing.abort();
    for (const id of this.growths.keys()) this.unwatchGrowth(id);
  }

  private async followGrowth(
    api: Api,
    { id, after, stop }: { id: string; after: number; stop: AbortSignal },
  ): Promise<void> {
    const { clock, outputGrew, coalesceMs = COALESCE_MS } = this.options;
    const signal = AbortSignal.any([stop, this.closing.signal]);
    await this.reportErrors(signal, async () => {
      for (let from = after; ;) {
        const waits = [{ id, for: [{ kind: 'growth' as const, after: from }] }];
        const [found] = (await api.wait({ waits }, signal)).met;
        if (found?.met !== true) return;
        outputGrew(id);
        from = found.after;
        await pause(clock, coalesceMs, signal);
      }
    });
    if (!stop.aborted) this.growths.delete(id);
  }

  private async followEnd(id: string): Promise<void> {
    const { signal } = this.closing;
    await this.reportErrors(signal, async () => {
      const api = await this.options.connect();
      const waits = [{ id, for: [{ kind: 'exit' as const }] }];
      const [found] = (await api.wait({ waits }, signal)).met;
      if (found) this.options.ended(found.process);
    });
  }

  /** Nobody awaits these: errors are reported, except cancellation and removed processes. */
  private async reportErrors(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (signal.aborted || (error instanceof HoldfastError && error.code === 'not_found')) return;
      this.options.report(error);
    }
  }
}
