// The operation `changes`: waits for a change of the list, then answers as many changes as one answer may hold.

import type { Owner, Results } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import type { Clock } from '../base/clock.ts';
import type { CancelSignal } from '../base/cancel-signal.ts';
import type { ListChanges } from './list-changes.ts';
import { listRows } from './list-rows.ts';
import { waitUntil } from './wait/wait-until.ts';

const DEFAULT_ROWS = 1000;

export async function waitForChanges(
  { changes, clock }: { readonly changes: ListChanges; readonly clock: Clock },
  {
    owner,
    params,
    signal,
  }: {
    readonly owner: Owner;
    readonly params: Params<'changes'>;
    readonly signal: CancelSignal | undefined;
  },
): Promise<Results['changes']> {
  const { epoch, after = 0, limit = DEFAULT_ROWS, waitMs = 0 } = params;
  const query = { owner, epoch, after };
  const check = (): true | undefined => changes.hasChanged(query) || undefined;
  const subscribe = (wake: () => void): (() => void) => changes.onChange(wake);
  await waitUntil(check, { clock, timeoutMs: waitMs, signal, subscribe });
  const { reset, changed, removed } = changes.find(query);
  const rows = listRows(changed.slice(0, limit));
  const last = changed[rows.length - 1];
  const more = rows.length < changed.length;
  const version = more && last ? changes.versionOf(last) : changes.version;
  return {
    epoch: changes.epoch,
    version,
    reset,
    more,
    changed: rows,
    removed: removed
      .filter((removal) => removal.version <= version)
      .map(({ owner: of, id }) => ({ owner: of, id })),
  };
}
