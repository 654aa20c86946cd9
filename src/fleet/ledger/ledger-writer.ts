// Writes one host's part of the ledger. Each message names the one before it, so a message whose outcome is unclear is
// stored once: after a doubt the last one is read, and the fence refuses the later one. An end is acknowledged to the
// keeper when it is stored, not before.

import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/ids.ts';
import { Cancellation, pause } from '../../protocol/cancellation.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import type { Fabric } from '../wire/fabric.ts';
import { ProblemReport } from '../wire/problem-report.ts';
import {
  BATCH_BYTES,
  encodeBatch,
  MOST_ENTRIES,
  readBatch,
  type Batch,
  type LedgerEntry,
} from './entries.ts';
import { HostNews } from './host-news.ts';
import { Refused, type Store } from './store.ts';
import { LEDGER, ledgerSubjects } from './streams.ts';

export interface LedgerWriterOptions {
  readonly fabric: Fabric;
  readonly clock: Clock;
  readonly host: HostApi;
  readonly name: string;
  readonly report: (message: string) => void;
}

interface Group {
  readonly entries: readonly LedgerEntry[];
  readonly bytes: number;
  readonly stored: () => void;
  readonly failed: (error: Error) => void;
}

/** JetStream has this long for the last word of a host. */
const CLOSE_MS = 5000;
const RETRY_MS = 250;
/** While NATS has no JetStream, or nobody has made the ledger. */
const LOOK_MS = 500;

export class LedgerWriter {
  private readonly options: LedgerWriterOptions;
  private readonly boot = randomId();
  private readonly end = new Cancellation();
  private readonly endNews = new Cancellation();
  private readonly subject: string;
  private readonly waiting: Group[] = [];
  private writing = false;
  private batches = 0;
  private store: Store | undefined;
  private epoch = '';
  private lastSeq = 0;
  private readonly problems = new ProblemReport((problem) =>
    this.options.report(`The ledger: ${problem}`),
  );
  private readonly done: Promise<void>;

  constructor(options: LedgerWriterOptions) {
    this.options = options;
    this.subject = ledgerSubjects.of(options.name);
    this.done = this.run();
  }

  /** The number of the next message of this writer. */
  get nextBatch(): number {
    return this.batches + 1;
  }

  /** Resolves when they are stored. Rejects if this has to begin anew: they may be stored or not. */
  append(entries: readonly LedgerEntry[]): Promise<void> {
    if (!this.store) return Promise.reject(new Error('There is no ledger now.'));
    const bytes = JSON.stringify(entries).length;
    return new Promise((stored, failed) => {
      this.waiting.push({ entries, bytes, stored, failed });
      void this.write();
    });
  }

  /** `last`: what it says before it goes. */
  async close(last?: LedgerEntry): Promise<void> {
    this.endNews.abort();
    const { clock } = this.options;
    if (last && this.store)
      await Promise.race([this.append([last]).catch(() => undefined), pause(clock, CLOSE_MS)]);
    this.end.abort();
    this.fail(new Error('The server is going down.'));
    await this.done;
  }

  private async run(): Promise<void> {
    const { clock } = this.options;
    while (!this.endNews.aborted) {
      let waitMs = LOOK_MS;
      try {
        const last = await this.open();
        if (last) {
          waitMs = RETRY_MS;
          const news = new HostNews({ ...this.options, writer: this, epoch: this.epoch });
          await news.follow(last, this.endNews);
        }
      } catch (error) {
        if (!this.end.aborted) this.problems.failed(error);
      }
      // What it says last is under way.
      if (this.endNews.aborted) return;
      this.store = undefined;
      this.fail(new Error('The ledger begins anew.'));
      await pause(clock, waitMs, this.endNews).catch(() => undefined);
    }
  }

  /** The entries of the last message of this host; undefined: there is no ledger. */
  private async open(): Promise<readonly LedgerEntry[] | undefined> {
    const { fabric } = this.options;
    if (!fabric.withJetStream) return undefined;
    const { Store: Loaded } = await import('./store.ts');
    const store = await Loaded.open(fabric);
    const state = await store?.state(LEDGER);
    if (!store || !state) return undefined;
    const last = await store.lastNear(LEDGER, this.subject);
    this.store = store;
    this.epoch = state.epoch.name;
    this.lastSeq = last?.seq ?? 0;
    this.problems.over();
    return (last && readBatch(last.bytes)?.entries) ?? [];
  }

  /** One message is under way at a time; what comes meanwhile goes into the next one. */
  private async write(): Promise<void> {
    if (this.writing) return;
    this.writing = true;
    try {
      for (let groups = this.take(); groups.length > 0; groups = this.take()) {
        try {
          await this.put(groups.flatMap(({ entries }) => entries));
          for (const { stored } of groups) stored();
        } catch (error) {
          const problem = error instanceof Error ? error : new Error(String(error));
          for (const { failed } of groups) failed(problem);
        }
      }
    } finally {
      this.writing = false;
    }
  }

  private take(): Group[] {
    let [count, entries, bytes] = [0, 0, 0];
    for (const group of this.waiting) {
      entries += group.entries.length;
      bytes += group.bytes;
      if (count > 0 && (entries > MOST_ENTRIES || bytes > BATCH_BYTES)) break;
      count += 1;
    }
    return this.waiting.splice(0, count);
  }

  private async put(entries: readonly LedgerEntry[]): Promise<void> {
    const { clock, fabric } = this.options;
    this.batches += 1;
    const batch: Batch = { v: 1, boot: this.boot, n: this.batches, entries };
    const bytes = encodeBatch(batch);
    for (;;) {
      const { store } = this;
      if (!store || this.end.aborted) throw new Error('The ledger begins anew.');
      try {
        if (fabric.connected) {
          this.lastSeq = await store.append(this.subject, bytes, this.lastSeq);
          return;
        }
      } catch (error) {
        if (error instanceof Refused && (await this.isStored(batch, store))) return;
        if (!(error instanceof Refused || this.end.aborted)) this.problems.failed(error);
      }
      await pause(clock, RETRY_MS, this.end);
    }
  }

  /** After a refusal: it is the last one. Throws if it is another one, or if the ledger is another one. */
  private async isStored(batch: Batch, store: Store): Promise<boolean> {
    const state = await store.state(LEDGER);
    if (state?.epoch.name !== this.epoch) throw new Error('The ledger has been made anew.');
    const last = await store.lastNear(LEDGER, this.subject);
    // A replica that lags: it is asked again after the next refusal.
    if (last && last.seq <= this.lastSeq) return false;
    const written = last && readBatch(last.bytes);
    if (last && written?.boot === batch.boot && written.n === batch.n) {
      this.lastSeq = last.seq;
      return true;
    }
    // Everything of this host is older than the ledger keeps.
    if (!last && this.lastSeq < state.firstSeq) {
      this.lastSeq = 0;
      return false;
    }
    throw new Error('Another message of this host was stored meanwhile.');
  }

  private fail(error: Error): void {
    for (const { failed } of this.waiting.splice(0)) failed(error);
  }
}
