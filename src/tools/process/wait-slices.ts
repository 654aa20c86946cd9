// Waits of the tools: as long as was asked for, whatever the server's own limit is, with a sign of life now and then;
// and the snapshot that follows when a wait breaks.

import { pause } from '../../protocol/cancellation.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { WaitResult } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { ToolCall, ToolContext } from '../tool-context.ts';

/** One question to the server; the next follows at once when it was answered in time. */
export const LONGEST_ASK_MS = 300_000;
/** Between two questions when the server answers early: no loop without a pause. */
const EARLY_PAUSE_MS = 1000;
/** Timers may be early by a little; that is no early answer. */
export const TIMER_SLACK_MS = 5;
const SNAPSHOT_MS = 30_000;

export type WaitFor = Pick<Params<'wait'>, 'waits' | 'mode'>;

export interface WaitTime {
  readonly timeoutMs: number;
  /** When it began to count; now, unless told. */
  readonly startMs?: number;
}

export async function waitAtMost(
  context: ToolContext,
  wanted: WaitFor,
  { timeoutMs, startMs = nowMs(context) }: WaitTime,
  call: ToolCall,
): Promise<WaitResult> {
  const signal = givenUp(call);
  const stopTelling = tellProgress(context, timeoutMs, call, startMs);
  try {
    for (;;) {
      const askedMs = nowMs(context);
      const leftMs = Math.max(0, timeoutMs - (askedMs - startMs));
      const ask = Math.min(leftMs, LONGEST_ASK_MS);
      const answer = await context.api.wait({ ...wanted, timeoutMs: Math.ceil(ask) }, signal);
      if (answer.met.length > 0) return answer;
      if (nowMs(context) - startMs >= timeoutMs - TIMER_SLACK_MS) return answer;
      if (nowMs(context) - askedMs < ask - TIMER_SLACK_MS)
        await pause(context.clock, EARLY_PAUSE_MS, signal);
    }
  } finally {
    stopTelling();
  }
}

/** How the process stands, without waiting for it, and not for ever. */
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

/** Either way the caller no longer listens. */
export function givenUp({ signal, interrupt }: ToolCall): AbortSignal | undefined {
  if (signal && interrupt) return AbortSignal.any([signal, interrupt]);
  return signal ?? interrupt;
}

export function nowMs({ clock }: Pick<ToolContext, 'clock'>): number {
  return clock.nowUs() / 1000;
}

/** While something else than the host's own wait takes its time. */
export async function telling<T>(
  context: ToolContext,
  ofMs: number,
  call: ToolCall,
  work: () => Promise<T>,
): Promise<T> {
  const stop = tellProgress(context, ofMs, call);
  try {
    return await work();
  } finally {
    stop();
  }
}

function tellProgress(
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
