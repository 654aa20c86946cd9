// The wait operation: the first of several conditions of one or many processes, or one condition of every process.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Met, WaitResult } from '../../protocol/host-api.ts';
import type { Condition } from '../../protocol/operations.ts';
import { waitUntil } from './wait-until.ts';
import { metOf, watch, type ConditionTools, type Watch } from './conditions.ts';
import type { HeldProcess } from '../process/held-process.ts';
import { slimRow } from '../list-rows.ts';

export interface WaitRequest {
  readonly waits: readonly { readonly process: HeldProcess; readonly for: readonly Condition[] }[];
  readonly mode: 'first' | 'all';
  readonly timeoutMs: number | undefined;
  readonly signal: CancelSignal | undefined;
}

export function waitFor(request: WaitRequest, tools: ConditionTools): Promise<WaitResult> {
  let wake = (): void => undefined;
  const parts = request.waits.map(
    (wait) => new ProcessWait(wait.process, wait.for, tools, () => wake()),
  );
  const subscribe = (now: () => void): (() => void) => {
    wake = now;
    const stops = parts.map((part) => part.process.onChange(now));
    return () => {
      for (const stop of stops) stop();
    };
  };
  const check = (): Met[] | undefined => verdictOf(parts, request.mode);
  const { timeoutMs, signal } = request;
  const { clock, waited } = tools;
  const begunUs = clock.nowUs();
  const ended = (): void => {
    waited?.(begunUs);
    for (const part of parts) part.stop();
  };
  const options = { clock, timeoutMs, signal, subscribe, ended };
  return waitUntil(check, options).then(resultOf);
}

/** The output closes with the exit, unless a descendant holds it open. */
const CLOSE_MS = 300;

/**
 * Waits until nothing of an exited process is left. A descendant that keeps the output open is alive, which ends the
 * wait.
 */
export async function settle(
  process: HeldProcess,
  timeoutMs: number,
  tools: ConditionTools,
  signal: CancelSignal | undefined,
): Promise<void> {
  const within = (kind: 'closed' | 'settled', ms: number): Promise<WaitResult> => {
    const waits = [{ process, for: [{ kind }] }];
    // It is part of a start, not a wait of its own.
    return waitFor(
      { waits, mode: 'first', timeoutMs: ms, signal },
      { ...tools, waited: undefined },
    );
  };
  await within('closed', Math.min(timeoutMs, CLOSE_MS));
  if (process.closedAtMs !== undefined) await within('settled', timeoutMs);
}

function resultOf(met: Met[] | undefined): WaitResult {
  if (met === undefined) return { met: [], timedOut: true };
  // Slim rows: hundreds of whole command lines would exceed the size of an answer.
  const slim =
    met.length > 1 ? met.map((each) => ({ ...each, process: slimRow(each.process) })) : met;
  return { met: slim, timedOut: false };
}

function verdictOf(parts: readonly ProcessWait[], mode: 'first' | 'all'): Met[] | undefined {
  const decided: Met[] = [];
  for (const part of parts) {
    const met = part.look();
    if (met?.met === true && mode === 'first') return [met];
    if (met) decided.push(met);
  }
  // Either everything is met, or nothing more can be met.
  return decided.length === parts.length ? decided : undefined;
}

class ProcessWait {
  readonly process: HeldProcess;
  private readonly conditions: readonly Condition[];
  private readonly watches: readonly Watch[];
  private decided: Met | undefined;

  constructor(
    process: HeldProcess,
    conditions: readonly Condition[],
    tools: ConditionTools,
    wake: () => void,
  ) {
    this.process = process;
    this.conditions = conditions;
    this.watches = conditions.map((condition) => watch(process, condition, tools, wake));
  }

  look(): Met | undefined {
    this.decided ??= this.decide();
    // A condition met before the removal stays met; no other condition of it can change.
    if (!this.decided && this.process.forgotten) throw this.process.notFound();
    return this.decided;
  }

  stop(): void {
    for (const each of this.watches) each.stop();
  }

  private decide(): Met | undefined {
    let hopeless = 0;
    for (const [index, each] of this.watches.entries()) {
      const verdict = each.look();
      const kind = this.conditions[index]?.kind;
      if (kind === undefined) throw new HoldfastError('internal', 'a wait without a condition');
      if (verdict?.met === true) return metOf(this.process, index, kind, verdict);
      if (verdict) hopeless += 1;
    }
    if (hopeless < this.watches.length) return undefined;
    return metOf(this.process, 0, this.conditions[0]?.kind ?? 'closed', { met: false });
  }
}
