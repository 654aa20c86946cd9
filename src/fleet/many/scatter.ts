// One question to every host. The answer says which hosts it lacks.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { abortedError, Cancellation } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostTable } from '../gateway/host-table.ts';

const DEFAULT_LIST_MS = 2000;
/** One that ends just after it was looked for makes one. */
const MOST_IDLE_ANSWERS = 3;

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

/** Hosts that answered a wait although they had nothing. A host that lies would keep the gateway busy for ever. */
export class IdleAnswers {
  private readonly counts = new Map<string, number>();

  note(host: string | undefined): void {
    if (host !== undefined) this.counts.set(host, (this.counts.get(host) ?? 0) + 1);
  }

  /** It is waited for no more. */
  areTooMany(host: string): boolean {
    return (this.counts.get(host) ?? 0) >= MOST_IDLE_ANSWERS;
  }
}

/**
 * Resolves with the host that answers first, when the hosts change, or when the time is over. A host that fails is waited for
 * no more: the next change of the hosts looks again.
 */
export async function firstOfAny(
  { table, clock }: ScatterDeps,
  wait: (host: string, signal: CancelSignal) => Promise<unknown>,
  { waitMs, idle }: { readonly waitMs: number; readonly idle: IdleAnswers },
  signal?: CancelSignal,
): Promise<string | undefined> {
  const rest = new Cancellation();
  const stop = (): void => rest.abort();
  signal?.addEventListener('abort', stop);
  let cancelLate = (): void => undefined;
  try {
    return await new Promise<string | undefined>((resolve, reject) => {
      rest.addEventListener('abort', () => reject(abortedError()));
      cancelLate = clock.after(waitMs, () => resolve(undefined));
      void table.changed().then(() => resolve(undefined));
      for (const { name, state } of table.all())
        if (state === 'here' && !idle.areTooMany(name))
          wait(name, rest).then(
            () => resolve(name),
            () => undefined,
          );
    });
  } finally {
    cancelLate();
    signal?.removeEventListener('abort', stop);
    stop();
  }
}
