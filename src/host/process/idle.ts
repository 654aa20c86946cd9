// Ends a terminal that was idle: nothing printed, typed, resized or marked for a while.

import type { Clock } from '../../base/clock.ts';
import type { HeldProcess } from './held-process.ts';

export function endWhenIdle(
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

export function onceExited(process: HeldProcess, then: () => void): void {
  const stop = process.onChange(() => {
    if (process.outcome === undefined) return;
    stop();
    then();
  });
}
