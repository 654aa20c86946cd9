// Waits of the tools: as long as requested, whatever the server's own limit is, with progress reports; and a bounded
// snapshot.

import { pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { WaitResult } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';

/** The longest single request; the next one follows at once. */
export const MAX_REQUEST_MS = 300_000;
/** The pause if the server answers early, so that there is no busy loop. */
const EARLY_PAUSE_MS = 1000;
/** Timers may fire a little early. */
export const TIMER_SLACK_MS = 5;
const SNAPSHOT_MS = 30_000;

export type WaitFor = Pick<Params<'wait'>, 'waits' | 'mode'>;

export interface WaitTime {
  readonly timeoutMs: number;
  /** When the wait began; by default now. */
  readonly startMs?: number;
}

export async function waitAtMost(
  context: ToolContext,
  wanted: WaitFor,
  { timeoutMs, startMs = nowMs(context) }: WaitTime,
  call: ToolCall,
): Promise<WaitResult> {
  const signal = abandonSignal(call);
  const stopReporting = reportProgress(context, timeoutMs, call, startMs);
  try {
    for (;;) {
      const askedMs = nowMs(context);
      const leftMs = Math.max(0, timeoutMs - (askedMs - startMs));
      const ask = Math.min(leftMs, MAX_REQUEST_MS);
      const answer = await context.api.wait({ ...wanted, timeoutMs: Math.ceil(ask) }, signal);
      if (answer.met.length > 0) return answer;
      if (nowMs(context) - startMs >= timeoutMs - TIMER_SLACK_MS) return answer;
      if (nowMs(context) - askedMs < ask - TIMER_SLACK_MS)
        await pause(context.clock, EARLY_PAUSE_MS, signal);
    }
  } finally {
    stopReporting();
  }
}

/** The state of a process, with a timeout. */
export async function snapshot(context: ToolContext, id: string): Promise<ProcessInfo> {
  const controller = new AbortController();
  const late = pause(context.clock, SNAPSHOT_MS, controller.signal).then(() => {
    throw new HoldfastError('keeper_unreachable', 'The host gave no answer within 30s.');
  });
  try {
    return await Promise.race([context.api.get(id), late]);
  } finally {
    controller.abort();
    late.catch(() => undefined);
  }
}

/** The caller no longer listens in either case. */
export function abandonSignal({ signal, interrupt }: ToolCall): AbortSignal | undefined {
  if (signal && interrupt) return AbortSignal.any([signal, interrupt]);
  return signal ?? interrupt;
}

export function nowMs({ clock }: Pick<ToolContext, 'clock'>): number {
  return clock.nowUs() / 1000;
}

/** Reports progress while `work` runs. */
export async function withProgress<T>(
  context: ToolContext,
  ofMs: number,
  call: ToolCall,
  work: () => Promise<T>,
): Promise<T> {
  const stop = reportProgress(context, ofMs, call);
  try {
    return await work();
  } finally {
    stop();
  }
}

function reportProgress(
  context: ToolContext,
  ofMs: number,
  { progress }: ToolCall,
  startMs = nowMs(context),
): () => void {
  if (!progress) return () => undefined;
  let cancel = (): void => undefined;
  const next = (): void => {
    cancel = context.clock.after(context.settings.progressEveryMs, () => {
      progress({ elapsedMs: Math.round(nowMs(context) - startMs), ofMs });
      next();
    });
  };
  next();
  return () => cancel();
}
