// The operation `completions`: waits for completions that a subscriber has not acknowledged.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import type { Completion, Owner, Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import { waitUntil } from '../wait/wait-until.ts';
import type { Completions } from './completions.ts';

export async function waitForCompletions(
  { completions, clock }: { readonly completions: Completions; readonly clock: Clock },
  {
    owner,
    params,
    signal,
  }: {
    readonly owner: Owner;
    readonly params: Params<'completions'>;
    readonly signal: CancelSignal | undefined;
  },
): Promise<Results['completions']> {
  const { subscriber = 'default', after = 0, limit = 100, waitMs = 0 } = params;
  const check = (): readonly Completion[] | undefined => {
    const pending = completions.pending({ owner, subscriber, after, limit });
    return pending.length > 0 ? pending : undefined;
  };
  const subscribe = (wake: () => void): (() => void) => completions.onNew(wake);
  const found = await waitUntil(check, { clock, timeoutMs: waitMs, signal, subscribe });
  await completions.stored();
  return { completions: found ?? [] };
}
