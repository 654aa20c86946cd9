// Ends a terminal that was idle: nothing printed, typed, resized or marked for a while.

import type { Clock } from '../../base/clock.ts';
import type { HeldProcess } from './held-process.ts';

function endWhenIdle(
  process: HeldProcess,
  idleMs: number,
  clock: Clock,
  end: () => Promise<void>,
): void {
  let seq = process.journal.visibleSeq;
  let changedUs = clock.nowUs();
  const look = (): void => {
    const left = idleMs - (clock.nowUs() - changedUs) / 1000;
    if (left <= 0) void end();
    else cancel = clock.after(Math.ceil(left), look);
  };
  let cancel = clock.after(idleMs, look);
  const stop = process.onChange(() => {
    // Every event counts; a wake-up without one does not.
    if (process.journal.visibleSeq === seq) return;
    seq = process.journal.visibleSeq;
    changedUs = clock.nowUs();
  });
  onceExited(process, () => {
    cancel();
    stop();
  });
}

function onceExited(process: HeldProcess, then: () => void): void {
  const stop = process.onChange(() => {
    if (process.outcome === undefined) return;
    stop();
    then();
  });
}

/** Ends a process by its hard timeout, and a terminal by its idle timeout. */
export function endInTime(
  process: HeldProcess,
  clock: Clock,
  end: (by: string) => Promise<void>,
): void {
  const { hardTimeoutMs, terminal } = process.facts;
  if (terminal?.idleTimeoutMs !== undefined)
    endWhenIdle(process, terminal.idleTimeoutMs, clock, () => end('idle timeout'));
  if (hardTimeoutMs === undefined) return;
  const cancel = clock.after(hardTimeoutMs, () => {
    process.noteTimeout(hardTimeoutMs);
    void end('hard timeout');
  });
  onceExited(process, cancel);
}
