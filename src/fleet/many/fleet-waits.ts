// A wait for processes of several hosts: each host waits for its own, and the first, or all of them, decide.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { Cancellation } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Met, Owner, WaitResult } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { HostAsker } from '../gateway/host-asker.ts';
import type { ProcessFinder } from './process-finder.ts';

export interface WaitDeps {
  readonly asker: HostAsker;
  readonly finder: ProcessFinder;
  readonly clock: Clock;
}

type Waits = Params<'wait'>['waits'];

export async function waitInFleet(
  deps: WaitDeps,
  owner: Owner,
  params: Params<'wait'>,
  signal?: CancelSignal,
): Promise<WaitResult> {
  const { waits } = params;
  const [only] = waits;
  if (waits.length === 1 && only)
    return deps.finder.at(
      owner,
      only.id,
      (host) => waitAt(deps, { host, owner, params }, signal),
      signal,
    );
  const hosts = await Promise.all(waits.map(({ id }) => deps.finder.find(owner, id, signal)));
  const groups = new Map<string, Waits>();
  for (const [index, wait] of waits.entries()) {
    const host = hosts[index] as string;
    groups.set(host, [...(groups.get(host) ?? []), wait]);
  }
  const [host] = hosts;
  if (groups.size === 1 && host !== undefined) return waitAt(deps, { host, owner, params }, signal);
  return waitForGroups(deps, owner, { ...params, groups }, signal);
}

async function waitForGroups(
  deps: WaitDeps,
  owner: Owner,
  { groups, ...params }: Params<'wait'> & { readonly groups: ReadonlyMap<string, Waits> },
  signal: CancelSignal | undefined,
): Promise<WaitResult> {
  const rest = new Cancellation();
  const stop = (): void => rest.abort();
  signal?.addEventListener('abort', stop);
  try {
    const results = Array.from(groups, ([host, waits]) =>
      waitAt(deps, { host, owner, params: { ...params, waits } }, rest),
    );
    const met = params.mode === 'all' ? undefined : await firstMet(results);
    if (met) return { met: [met], timedOut: false };
    const all = await Promise.all(results);
    if (all.some(({ timedOut }) => timedOut)) return { met: [], timedOut: true };
    return {
      met: inOrder(
        all.flatMap((each) => each.met),
        params.waits,
      ),
      timedOut: false,
    };
  } finally {
    signal?.removeEventListener('abort', stop);
    stop();
  }
}

/** Undefined if no group has one. */
function firstMet(results: readonly Promise<WaitResult>[]): Promise<Met | undefined> {
  return new Promise((resolve, reject) => {
    let left = results.length;
    for (const result of results)
      result.then(({ met }) => {
        const found = met.find((each) => each.met);
        left -= 1;
        if (found || left === 0) resolve(found);
      }, reject);
  });
}

function inOrder(met: readonly Met[], waits: Waits): Met[] {
  const place = (id: string): number => waits.findIndex((wait) => wait.id === id);
  return met.toSorted((a, b) => place(a.id) - place(b.id));
}

/** A host that is away when the time is over has timed out like any other. */
async function waitAt(
  { asker, clock }: WaitDeps,
  { host, owner, params }: { host: string; owner: Owner; params: Params<'wait'> },
  signal: CancelSignal | undefined,
): Promise<WaitResult> {
  const begunUs = clock.nowUs();
  try {
    return await asker.ask(host, { op: 'wait', owner, params }, { signal });
  } catch (error) {
    const { timeoutMs = Infinity } = params;
    const isOver = clock.nowUs() - begunUs >= timeoutMs * 1000 && timeoutMs > 0;
    if (error instanceof HoldfastError && error.code === 'host_unreachable' && isOver)
      return { met: [], timedOut: true };
    throw error;
  }
}
