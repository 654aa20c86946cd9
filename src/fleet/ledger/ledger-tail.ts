// A gateway's view of the ledger. It reads all of it once and follows it; it keeps the numbers of the ends by owner, and the
// newest messages. Older ones are read again when they are asked for.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/ids.ts';
import { abortedError, Cancellation, pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Completion, type Owner } from '../../protocol/host-api.ts';
import type { Fabric } from '../wire/fabric.ts';
import { ProblemReport } from '../wire/problem-report.ts';
import { EndNumbers, messageOf, numberOf } from './end-numbers.ts';
import { readBatch, type LedgerEntry } from './entries.ts';
import type { Store, Stored, StreamState } from './store.ts';
import { CLAIMS, hostOfLedger, KEPT, LEDGER, newEpoch, type Epoch } from './streams.ts';

export interface LedgerTailOptions {
  readonly fabric: Fabric;
  readonly clock: Clock;
  readonly report: (message: string) => void;
  /** Each entry, once and in the order of the ledger, also those of before this gateway began. */
  readonly heard?: (host: string, entry: LedgerEntry) => void;
  /** Whether an id was made for another host than this one. */
  readonly isOthers?: (host: string, id: string) => boolean;
}

/** none: NATS has no JetStream. away: it has, and there is no answer from it now. */
export type LedgerState = 'none' | 'away' | 'open';

const NO_LEDGER =
  'NATS has no JetStream, so the fleet has no ledger: completions are numbered by time, and two gateways can start one key twice.';
const RETRY_MS = 250;
/** How often JetStream is asked whether messages have come that were not heard. */
const WATCH_MS = 3000;
/** A follower that hears nothing for this long, although there is more, is replaced. */
const STALL_MS = 2000;
const MOST_CACHED_BYTES = 16 * 1024 * 1024;

export class LedgerTail {
  private readonly options: LedgerTailOptions;
  private readonly end = new Cancellation();
  private readonly numbers = new EndNumbers();
  /** Newest last. */
  private readonly cache = new Map<number, { ends: readonly Completion[]; bytes: number }>();
  private cachedBytes = 0;
  private readonly listeners = new Set<() => void>();
  /** Hosts that have left, or were forgotten, and have written nothing since. */
  readonly departed = new Set<string>();
  private store: Store | undefined;
  private epoch: Epoch | undefined;
  private seenSeq = 0;
  private current: LedgerState = 'away';
  private hasConnected = false;

  private readonly problems = new ProblemReport((problem) =>
    this.options.report(`The ledger: ${problem}`),
  );
  private readonly done: Promise<void>;

  constructor(options: LedgerTailOptions) {
    this.options = options;
    options.fabric.onUp(() => this.wake());
    this.done = this.run();
  }

  /** Whether NATS has JetStream. */
  get isKnown(): boolean {
    return this.hasConnected;
  }

  get state(): LedgerState {
    return this.current;
  }

  /** Resolves when it is known whether there is a ledger. */
  async isThere(): Promise<boolean> {
    while (!this.isKnown) await this.nextChange(RETRY_MS);
    return this.current !== 'none';
  }

  /** Where claims and acknowledgements are; undefined while JetStream does not answer. */
  get kept(): Store | undefined {
    return this.current === 'open' ? this.store : undefined;
  }

  /** The numbers of the ends that this owner sees, from the first one above `after`. */
  endsAfter(owner: Owner, after: number): Iterable<number> {
    return this.numbers.after(owner === EVERYONE ? undefined : owner, after);
  }

  /** Undefined: it is older than the ledger keeps. */
  async completion(number: number): Promise<Completion | undefined> {
    const { epoch, store } = this;
    if (!epoch) return undefined;
    const seq = messageOf(epoch.atMs, number);
    const cached = this.cache.get(seq)?.ends;
    const message = cached ? undefined : await store?.at(seq);
    const ends = cached ?? (message ? this.endsOf(message, epoch) : []);
    return ends.find((each) => each.number === number);
  }

  async close(): Promise<void> {
    this.end.abort();
    this.wake();
    await this.done;
  }

  private async run(): Promise<void> {
    const { fabric } = this.options;
    while (!this.end.aborted) {
      try {
        this.hasConnected ||= fabric.connected;
        if (fabric.withJetStream) {
          if (this.current === 'none') this.setState('away');
          await this.follow();
        } else if (fabric.connected && this.epoch === undefined) this.setState('none');
      } catch (error) {
        if (!this.end.aborted) this.problems.failed(error);
      }
      if (this.current === 'open') this.setState('away');
      await this.nextChange(RETRY_MS).catch(() => undefined);
    }
  }

  /** Until the connection, or the ledger, is another one, or nothing is heard of it any more. */
  private async follow(): Promise<void> {
    const { fabric, clock } = this.options;
    const { Store: Loaded } = await import('./store.ts');
    const store = await Loaded.open(fabric);
    if (!store) return;
    const { epoch, lastSeq } = await this.ensure(store);
    if (epoch.name !== this.epoch?.name || lastSeq < this.seenSeq) this.beginAnew(epoch);
    this.store = store;
    let isCurrent = true;
    const messages = await store.follow(this.seenSeq + 1, (message) => {
      if (isCurrent) this.note(message, epoch);
    });
    try {
      for (let target = lastSeq; await this.caughtUp(target);) {
        this.setState('open');
        await pause(clock, WATCH_MS, this.end);
        const state = fabric.withJetStream && (await store.state(LEDGER));
        if (state?.epoch.name !== epoch.name || state.lastSeq < this.seenSeq) return;
        this.numbers.dropBelow(numberOf(epoch.atMs, state.firstSeq, 0));
        target = state.lastSeq;
      }
    } finally {
      isCurrent = false;
      messages.stop();
    }
  }

  /** Makes what is missing. Two gateways that do so at once make one. */
  private async ensure(store: Store): Promise<StreamState> {
    const nowMs = Math.max(this.options.clock.wallMs(), (this.epoch?.atMs ?? 0) + this.seenSeq + 1);
    const epoch = newEpoch(nowMs, randomId());
    for (const stream of [CLAIMS, KEPT] as const)
      if (!(await store.state(stream))) await store.make(stream, epoch);
    const found = await store.state(LEDGER);
    if (found) return found;
    await store.make(LEDGER, epoch);
    const made = await store.state(LEDGER);
    if (!made) throw new Error('The ledger was made, and is not there.');
    return made;
  }

  /** False: nothing came for a while although there is more. */
  private async caughtUp(target: number): Promise<boolean> {
    while (this.seenSeq < target) {
      const before = this.seenSeq;
      await this.nextChange(STALL_MS);
      if (this.seenSeq === before) return false;
    }
    return true;
  }

  /** Resolves with the next change, or when the time is over. */
  nextChange(ms: number, signal?: CancelSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.listeners.delete(end);
        cancel();
        signal?.removeEventListener('abort', end);
        if (signal?.aborted) reject(abortedError());
        else if (this.end.aborted) reject(closedError());
        else resolve();
      };
      this.listeners.add(end);
      const cancel = this.options.clock.after(ms, end);
      if (signal?.aborted || this.end.aborted) end();
      else signal?.addEventListener('abort', end);
    });
  }

  private beginAnew(epoch: Epoch): void {
    this.epoch = epoch;
    this.seenSeq = 0;
    this.numbers.clear();
    this.departed.clear();
    this.cache.clear();
    this.cachedBytes = 0;
  }

  private note(message: Stored, epoch: Epoch): void {
    const { seq, subject, bytes } = message;
    if (seq <= this.seenSeq) return;
    this.seenSeq = seq;
    const batch = readBatch(bytes);
    const ends = this.endsOf(message, epoch, batch);
    for (const { owner, number } of ends) this.numbers.add(owner, number);
    this.keep(seq, ends, bytes.length);
    const host = hostOfLedger(subject);
    for (const entry of batch?.entries ?? []) {
      if (entry.t === 'left' || entry.t === 'gone') this.departed.add(host);
      else this.departed.delete(host);
      this.options.heard?.(host, entry);
    }
    this.wake();
  }

  /** A host speaks of itself: an end of a process that another one has does not count. */
  private endsOf(
    { seq, subject, bytes }: Stored,
    { atMs }: Epoch,
    batch = readBatch(bytes),
  ): Completion[] {
    const host = hostOfLedger(subject);
    return (batch?.entries ?? []).flatMap((entry, index) => {
      if (entry.t !== 'ended' || this.options.isOthers?.(host, entry.end.id)) return [];
      return [{ ...entry.end, host, number: numberOf(atMs, seq, index) }];
    });
  }

  private keep(seq: number, ends: readonly Completion[], bytes: number): void {
    if (ends.length === 0) return;
    this.cache.set(seq, { ends, bytes });
    this.cachedBytes += bytes;
    for (const [oldest, { bytes: freed }] of this.cache) {
      if (this.cachedBytes <= MOST_CACHED_BYTES) return;
      this.cache.delete(oldest);
      this.cachedBytes -= freed;
    }
  }

  private setState(state: LedgerState): void {
    if (state === this.current) return;
    this.current = state;
    if (state === 'open') this.problems.over();
    if (state === 'none') this.options.report(NO_LEDGER);
    this.wake();
  }

  private wake(): void {
    for (const listener of this.listeners) listener();
  }
}

function closedError(): HoldfastError {
  return new HoldfastError('host_closed', 'The gateway is going down.');
}
