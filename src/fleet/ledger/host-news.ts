// What a host has to tell the ledger: ends from the feed of its keeper, beginnings and removals from the changes of its list.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { Cancellation, pause } from '../../protocol/cancellation.ts';
import { EVERYONE, type Completion, type HostApi } from '../../protocol/host-api.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { BATCH_BYTES, keyOf, MOST_ENTRIES, type Begun, type LedgerEntry } from './entries.ts';
import type { LedgerWriter } from './ledger-writer.ts';

export interface HostNewsOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly writer: Pick<LedgerWriter, 'append' | 'nextBatch'>;
  /** Of the ledger: a new one gets everything that the keeper still has. */
  readonly epoch: string;
}

const WAIT_MS = 20_000;
/** Between two questions about the list: many short processes cost few of them. */
const LIST_PAUSE_MS = 250;
const COMMAND_CHARS = 1024;
const MOST_RECENT = 10_000;

export class HostNews {
  private readonly options: HostNewsOptions;
  private readonly subscriber: string;
  /** Begun and written, by key: when they began. */
  private readonly begun = new Map<string, number>();
  /** Written as ended, the newest ones, by key: when. Their beginning may come later. */
  private readonly ended = new Map<string, number>();

  constructor(options: HostNewsOptions) {
    this.options = options;
    this.subscriber = `fleet-${options.epoch}`;
  }

  /** Until the ledger has to begin anew, which is an error. `last`: the entries of the last message of this host. */
  async follow(last: readonly LedgerEntry[], signal: CancelSignal): Promise<void> {
    const stop = new Cancellation();
    const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', resolve));
    const abort = (): void => stop.abort();
    // It may have been closed while the ledger was opened.
    if (signal.aborted) return;
    signal.addEventListener('abort', abort);
    try {
      // A keeper that does not answer holds up nobody.
      await Promise.race([stopped, this.followEnds(last, stop), this.followList(stop)]);
    } finally {
      stop.abort();
      signal.removeEventListener('abort', abort);
    }
  }

  private async followEnds(last: readonly LedgerEntry[], signal: CancelSignal): Promise<void> {
    const { host } = this.options;
    const { subscriber } = this;
    // The server before this one may have died between the ledger and the keeper.
    const written = new Set(
      last.flatMap((entry) => (entry.t === 'ended' ? [signOf(entry.n, entry.end)] : [])),
    );
    let before = Math.max(0, ...last.map((entry) => (entry.t === 'ended' ? entry.n : 0)));
    for (let after = 0; ;) {
      const params = { subscriber, after, limit: MOST_ENTRIES - 1, waitMs: WAIT_MS };
      const { completions } = await host.completions(EVERYONE, params, signal);
      const page = fitting(completions);
      const fresh = page.filter((each) => !written.has(signOf(each.number, each)));
      const [first] = fresh;
      const missed = first && before > 0 ? first.number - before - 1 : 0;
      const entries = fresh.map(({ number: n, ...end }): LedgerEntry => ({ t: 'ended', n, end }));
      for (const each of fresh) this.noteEnd(each);
      if (missed > 0) entries.unshift({ t: 'missed', count: missed });
      if (entries.length > 0) await this.options.writer.append(entries);
      const numbers = page.map(({ number }) => number);
      if (numbers.length === 0) continue;
      await host.acknowledge(EVERYONE, { subscriber, numbers });
      after = numbers.at(-1) ?? after;
      before = after;
    }
  }

  private async followList(signal: CancelSignal): Promise<void> {
    const { host, clock, writer } = this.options;
    let position: { epoch?: string; after?: number } = {};
    let from = 0;
    for (;;) {
      const params = { ...position, limit: 1000, waitMs: WAIT_MS };
      const answer = await host.changes(EVERYONE, params, signal);
      if (answer.reset) {
        this.begun.clear();
        from = writer.nextBatch;
      }
      const entries = this.changesOf(answer);
      if (from > 0 && !answer.more) {
        entries.push({ t: 'anew', from });
        from = 0;
      }
      while (entries.length > 0) await writer.append(entries.splice(0, MOST_ENTRIES));
      position = { epoch: answer.epoch, after: answer.version };
      if (!answer.more) await pause(clock, LIST_PAUSE_MS, signal);
    }
  }

  private changesOf(answer: Awaited<ReturnType<HostApi['changes']>>): LedgerEntry[] {
    const entries: LedgerEntry[] = [];
    for (const { owner, id } of answer.removed) {
      this.begun.delete(keyOf({ owner, id }));
      entries.push({ t: 'removed', owner, id });
    }
    for (const row of answer.changed) {
      const key = keyOf(row);
      const { startedAtMs } = row;
      if (row.state !== 'running') this.begun.delete(key);
      else if (
        this.begun.get(key) !== startedAtMs &&
        !((this.ended.get(key) ?? 0) >= startedAtMs)
      ) {
        this.begun.set(key, startedAtMs);
        entries.push(begunOf(row));
      }
    }
    return entries;
  }

  private noteEnd(end: Completion): void {
    const key = keyOf(end);
    this.ended.delete(key);
    this.ended.set(key, end.atMs);
    const [oldest] = this.ended.keys();
    if (this.ended.size > MOST_RECENT && oldest !== undefined) this.ended.delete(oldest);
  }
}

function begunOf({ id, owner, command, name, labels, startedAtMs }: ProcessInfo): Begun {
  return {
    t: 'begun',
    id,
    owner,
    command: command.slice(0, COMMAND_CHARS),
    ...(name !== undefined && { name }),
    ...(labels && { labels: { ...labels } }),
    startedAtMs,
  };
}

/** As many as a message takes. */
function fitting(completions: readonly Completion[]): readonly Completion[] {
  let bytes = 0;
  const most = completions.findIndex((each, index) => {
    bytes += JSON.stringify(each).length;
    return index > 0 && bytes > BATCH_BYTES;
  });
  return most < 0 ? completions : completions.slice(0, most);
}

/** Numbers of a feed may begin again when its keeper does. */
function signOf(n: number, { owner, id, atMs }: Omit<Completion, 'number'>): string {
  return JSON.stringify([n, owner, id, atMs]);
}
