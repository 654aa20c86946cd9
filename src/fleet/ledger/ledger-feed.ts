// The completions of a fleet, from its ledger: in one order at every gateway, until a subscriber acknowledges them.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Completion, Owner, Results } from '../../protocol/host-api.ts';
import { MAX_LIST_CHARS } from '../../protocol/limits.ts';
import type { Params } from '../../protocol/operations.ts';
import { timeOf } from '../many/fleet-order.ts';
import { acknowledge, isAcknowledged, readAcknowledged } from './acknowledged.ts';
import { isByTime } from './end-numbers.ts';
import type { LedgerTail } from './ledger-tail.ts';
import type { Store } from './store.ts';

/** JetStream chooses another leader within 10 s. */
const PATIENCE_MS = 12_000;
const RETRY_MS = 250;

export class LedgerFeed {
  private readonly tail: LedgerTail;
  private readonly clock: Clock;

  constructor(tail: LedgerTail, clock: Clock) {
    this.tail = tail;
    this.clock = clock;
  }

  async completions(
    owner: Owner,
    params: Params<'completions'>,
    signal?: CancelSignal,
  ): Promise<Results['completions']> {
    const { subscriber: name = 'default', after = 0, limit = 100, waitMs = 0 } = params;
    const untilUs = this.clock.nowUs() + waitMs * 1000;
    for (;;) {
      const done = await this.withStore(
        (store) => readAcknowledged(store, { owner, name }),
        signal,
      );
      const behind = isByTime(after) ? 0 : after;
      const found: Completion[] = [];
      let [chars, newest] = [0, Math.max(behind, done.floor)];
      for (const number of this.tail.endsAfter(owner, newest)) {
        if (found.length >= limit || chars > MAX_LIST_CHARS) break;
        newest = number;
        if (isAcknowledged(done, number)) continue;
        const completion = await this.withStore(() => this.tail.completion(number), signal);
        // A reader that remembers a number by time gets what came at that time again.
        if (!completion || (isByTime(after) && completion.atMs < timeOf(after) - 1)) continue;
        found.push(completion);
        chars += JSON.stringify(completion).length;
      }
      if (found.length > 0 || this.clock.nowUs() >= untilUs) return { completions: found };
      await this.nextEnd(owner, newest, untilUs, signal);
    }
  }

  async acknowledge(
    owner: Owner,
    { subscriber: name = 'default', numbers }: Params<'acknowledge'>,
  ): Promise<Results['acknowledge']> {
    const ends = (after: number): Iterable<number> => this.tail.endsAfter(owner, after);
    const given = { subscriber: { owner, name }, numbers, ends };
    const acknowledged = await this.withStore((store) => acknowledge(store, given));
    return { acknowledged };
  }

  /** Again while JetStream has no leader. */
  private async withStore<T>(act: (store: Store) => Promise<T>, signal?: CancelSignal): Promise<T> {
    const untilUs = this.clock.nowUs() + PATIENCE_MS * 1000;
    for (;;) {
      let why = 'the ledger is not open';
      const { kept } = this.tail;
      try {
        if (kept) return await act(kept);
      } catch (error) {
        if (error instanceof HoldfastError) throw error;
        why = error instanceof Error ? error.message : String(error);
      }
      if (this.clock.nowUs() > untilUs)
        throw new HoldfastError('fabric_degraded', `JetStream does not answer: ${why}.`);
      await this.tail.nextChange(RETRY_MS, signal);
    }
  }

  /** Resolves when this owner has an end above the newest one, or when the time is over. */
  private async nextEnd(
    owner: Owner,
    newest: number,
    untilUs: number,
    signal?: CancelSignal,
  ): Promise<void> {
    for (;;) {
      const leftMs = (untilUs - this.clock.nowUs()) / 1000;
      const [next] = this.tail.endsAfter(owner, newest);
      if (next !== undefined || leftMs <= 0) return;
      await this.tail.nextChange(leftMs, signal);
    }
  }
}
