// One question to every host. The answer says which hosts it lacks.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { abortedError, Cancellation } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostTable } from '../gateway/host-table.ts';

const DEFAULT_LIST_MS = 2000;

export interface Gathered<T> {
  readonly answers: readonly { readonly host: string; readonly answer: T }[];
  /** Hosts that did not answer, with the reason of each. */
  readonly missing: ReadonlyMap<string, HoldfastError>;
}

interface ScatterDeps {
  readonly table: HostTable;
  readonly clock: Clock;
  /** A list is answered after this long, with what has come. */
  readonly listMs?: number | undefined;
}

/** Errors other than that a host cannot be reached are thrown: every host would answer the same. */
export async function scatter<T>(
  { table, clock, listMs = DEFAULT_LIST_MS }: ScatterDeps,
  ask: (host: string, signal: CancelSignal) => Promise<T>,
  signal?: CancelSignal,
): Promise<Gathered<T>> {
  const answers: { host: string; answer: T }[] = [];
  const missing = new Map<string, HoldfastError>();
  const cancellation = new Cancellation();
  const stop = (): void => cancellation.abort();
  signal?.addEventListener('abort', stop);
  const late = clock.after(listMs, stop);
  try {
    await Promise.all(
      table.all().map(async ({ name }) => {
        try {
          answers.push({ host: name, answer: await ask(name, cancellation) });
        } catch (error) {
          if (error instanceof HoldfastError && isRefusal(error)) return;
          if (!(error instanceof HoldfastError) || !isAbsence(error)) throw error;
          if (error.code === 'aborted' && signal?.aborted) throw error;
          missing.set(name, error);
        }
      }),
    );
  } finally {
    late();
    signal?.removeEventListener('abort', stop);
    cancellation.abort();
  }
  return { answers, missing };
}

/** The host does not work for this owner, so it has nothing of it. */
function isRefusal({ code, details }: HoldfastError): boolean {
  return code === 'forbidden' && 'host' in details;
}

/** The host itself did not answer: it is away, too late, or its keeper is. */
function isAbsence({ code }: HoldfastError): boolean {
  return (
    code === 'host_unreachable' ||
    code === 'aborted' ||
    code === 'fabric_degraded' ||
    code === 'keeper_unreachable' ||
    code === 'keeper_lost' ||
    code === 'not_answering' ||
    code === 'host_closed'
  );
}

/** For answers that need every host. */
export function needAll<T>({ answers, missing }: Gathered<T>): Gathered<T>['answers'] {
  const [first] = missing;
  if (!first) return answers;
  const names = [...missing.keys()].slice(0, 5).join(', ');
  const more = missing.size > 5 ? ` and ${missing.size - 5} more` : '';
  const problem = `Not every host answered: ${names}${more}. ${first[1].message}`;
  throw new HoldfastError('host_unreachable', problem, { hosts: [...missing.keys()] });
}

/**
 * Resolves with the first answer of any host, when the hosts change, or when the time is over. A host that fails is waited for
 * no more: the next change of the hosts looks again.
 */
export async function firstOfAny(
  { table, clock }: ScatterDeps,
  wait: (host: string, signal: CancelSignal) => Promise<unknown>,
  waitMs: number,
  signal?: CancelSignal,
): Promise<void> {
  const rest = new Cancellation();
  const stop = (): void => rest.abort();
  signal?.addEventListener('abort', stop);
  let cancelLate = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      rest.addEventListener('abort', () => reject(abortedError()));
      cancelLate = clock.after(waitMs, resolve);
      void table.changed().then(resolve);
      for (const { name, state } of table.all())
        if (state === 'here')
          wait(name, rest).then(
            () => resolve(),
            () => undefined,
          );
    });
  } finally {
    cancelLate();
    signal?.removeEventListener('abort', stop);
    stop();
  }
}
