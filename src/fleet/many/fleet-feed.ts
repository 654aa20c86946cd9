// The completions of all hosts of a fleet without a ledger. Each host keeps its own until they are acknowledged; here they are numbered by their time.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Completion, Owner, Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import { pageLength, placeOf, saltOf } from './fleet-order.ts';
import type { FinderDeps } from './process-finder.ts';
import { firstOfAny, IdleAnswers, scatter } from './scatter.ts';

interface Placed {
  readonly host: string;
  /** Its number at its host. */
  readonly local: number;
  readonly completion: Completion;
}

const PAGE_ROWS = 1000;
/** Of one host in one answer: one that lies may send pages for ever. */
const MOST_PENDING = 100_000;

export class FleetFeed {
  private readonly deps: FinderDeps;

  constructor(deps: FinderDeps) {
    this.deps = deps;
  }

  async completions(
    owner: Owner,
    params: Params<'completions'>,
    signal?: CancelSignal,
  ): Promise<Results['completions']> {
    const { subscriber, after = 0, limit = 100, waitMs = 0 } = params;
    const { clock, settled } = this.deps;
    await settled();
    const untilUs = clock.nowUs() + waitMs * 1000;
    const idle = new IdleAnswers();
    for (;;) {
      const all = await this.pending(owner, subscriber, signal);
      const found = all.filter(({ completion }) => completion.number > after);
      const numbers = found.map(({ completion }) => completion.number);
      const shown = found.slice(0, pageLength(numbers, limit));
      const leftMs = (untilUs - clock.nowUs()) / 1000;
      if (shown.length > 0 || leftMs <= 0)
        return { completions: shown.map(({ completion }) => completion) };
      const wait = { subscriber, waitMs: Math.ceil(leftMs), idle };
      idle.note(await this.nextAfter(all, owner, wait, signal));
    }
  }

  async acknowledge(
    owner: Owner,
    { subscriber, numbers }: Params<'acknowledge'>,
  ): Promise<Results['acknowledge']> {
    const wanted = new Set(numbers);
    const byHost = new Map<string, number[]>();
    for (const { host, local, completion } of await this.pending(owner, subscriber))
      if (wanted.has(completion.number)) byHost.set(host, [...(byHost.get(host) ?? []), local]);
    const counts = await Promise.all(
      Array.from(byHost, async ([host, locals]) => {
        const params = { subscriber, numbers: locals };
        const { acknowledged } = await this.deps.asker.ask(host, {
          op: 'acknowledge',
          owner,
          params,
        });
        return acknowledged;
      }),
    );
    return { acknowledged: counts.reduce((total, count) => total + count, 0) };
  }

  /** Everything that this subscriber has not acknowledged at the hosts that answer. */
  private async pending(
    owner: Owner,
    subscriber: string | undefined,
    signal?: CancelSignal,
  ): Promise<Placed[]> {
    const { answers } = await scatter(
      this.deps,
      (host, stop) => this.pendingAt(host, owner, subscriber, stop),
      signal,
    );
    const all = answers.flatMap(({ answer }) => answer);
    return all.sort((a, b) => a.completion.number - b.completion.number);
  }

  private async pendingAt(
    host: string,
    owner: Owner,
    subscriber: string | undefined,
    signal: CancelSignal,
  ): Promise<Placed[]> {
    const found: Placed[] = [];
    const salt = saltOf(host);
    for (let after = 0; ;) {
      const params = { subscriber, after, limit: PAGE_ROWS };
      const request = { op: 'completions', owner, params } as const;
      const { completions } = await this.deps.asker.ask(host, request, { signal });
      for (const completion of completions) {
        const { number: local, atMs } = completion;
        // Odd: the numbers of a ledger are even.
        const number = placeOf(atMs, 2 * (salt + local) + 1);
        found.push({ host, local, completion: { ...completion, host, number } });
      }
      const last = completions.at(-1)?.number ?? after;
      if (completions.length < PAGE_ROWS || last <= after || found.length >= MOST_PENDING)
        return found;
      after = last;
    }
  }

  /** Resolves when a host has one more than these, when the hosts change, or when the time is over. */
  private nextAfter(
    known: readonly Placed[],
    owner: Owner,
    { idle, ...params }: { subscriber: string | undefined; waitMs: number; idle: IdleAnswers },
    signal: CancelSignal | undefined,
  ): Promise<string | undefined> {
    const newest = new Map<string, number>();
    for (const { host, local } of known) newest.set(host, Math.max(local, newest.get(host) ?? 0));
    const wait = (host: string, stop: CancelSignal): Promise<unknown> => {
      const asked = { ...params, after: newest.get(host) ?? 0, limit: 1 };
      const request = { op: 'completions', owner, params: asked } as const;
      return this.deps.asker.ask(host, request, { signal: stop });
    };
    return firstOfAny(this.deps, wait, { waitMs: params.waitMs, idle }, signal);
  }
}
