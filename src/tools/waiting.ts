// Waits of the tools: as long as was asked for, whatever the server's own limit is, with a sign of life now and then;
// and the snapshot that follows when a wait breaks.

import { HoldfastError } from '../protocol/errors.ts';
import type { WaitResult } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { ToolCall, ToolRoom } from './tool-room.ts';

/** One question to the server; the next follows at once when it was answered in time. */
const LONGEST_ASK_MS = 300_000;
/** Between two questions when the server answers early: no loop without a pause. */
const EARLY_PAUSE_MS = 1000;
/** Timers may be early by a little; that is no early answer. */
const TIMER_SLACK_MS = 5;
const SNAPSHOT_MS = 30_000;

export type WaitFor = Pick<Params<'wait'>, 'waits' | 'mode'>;

export async function waitAtMost(
  room: ToolRoom,
  wanted: WaitFor,
  timeoutMs: number,
  call: ToolCall,
): Promise<WaitResult> {
  const signal = givenUp(call);
  const startMs = nowMs(room);
  const stopTelling = tellProgress(room, timeoutMs, call);
  try {
    for (;;) {
      const askedMs = nowMs(room);
      const leftMs = Math.max(0, timeoutMs - (askedMs - startMs));
      const ask = Math.min(leftMs, LONGEST_ASK_MS);
      const answer = await room.api.wait({ ...wanted, timeoutMs: Math.ceil(ask) }, signal);
      if (answer.met.length > 0) return answer;
      if (nowMs(room) - startMs >= timeoutMs - TIMER_SLACK_MS) return answer;
      if (nowMs(room) - askedMs < ask - TIMER_SLACK_MS) await pause(room, EARLY_PAUSE_MS, signal);
    }
  } finally {
    stopTelling();
  }
}

/** How the process stands, without waiting for it, and not for ever. */
export async function snapshot(room: ToolRoom, id: string): Promise<ProcessInfo> {
  const controller = new AbortController();
  const late = pause(room, SNAPSHOT_MS, controller.signal).then(() => {
    throw new HoldfastError('keeper_unreachable', 'The host gave no answer within 30s.');
  });
  try {
    return await Promise.race([room.api.get(id), late]);
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

export function nowMs({ clock }: Pick<ToolRoom, 'clock'>): number {
  return clock.nowUs() / 1000;
}

/** Rejects as `aborted` when the signal comes first. */
export function pause(
  { clock }: Pick<ToolRoom, 'clock'>,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = (): void => {
      cancel();
      reject(new HoldfastError('aborted', 'The caller stopped waiting.'));
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', over);
      resolve();
    });
    if (signal?.aborted === true) over();
    else signal?.addEventListener('abort', over, { once: true });
  });
}

/** While something else than the host's own wait takes its time. */
export async function telling<T>(
  room: ToolRoom,
  ofMs: number,
  call: ToolCall,
  work: () => Promise<T>,
): Promise<T> {
  const stop = tellProgress(room, ofMs, call);
  try {
    return await work();
  } finally {
    stop();
  }
}

function tellProgress(room: ToolRoom, ofMs: number, { progress }: ToolCall): () => void {
  if (!progress) return () => undefined;
  const startMs = nowMs(room);
  let cancel = (): void => undefined;
  const next = (): void => {
    cancel = room.clock.after(room.settings.progressEveryMs, () => {
      progress({ elapsedMs: Math.round(nowMs(room) - startMs), ofMs });
      next();
    });
  };
  next();
  return () => cancel();
}
