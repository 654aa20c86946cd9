// Shows the elapsed time in the last line of the terminal while a person waits.

import type { ProcessInfo } from '../../protocol/process.ts';
import type { Output } from './output.ts';
import { formatDuration } from '../arguments/units.ts';

export interface Elapsed {
  /** Since the process was started, in words. */
  elapsed(): string;
  stop(): void;
}

const TICK_MS = 1000;

export function showElapsed(
  out: Output,
  process: Pick<ProcessInfo, 'name' | 'command' | 'durationMs'>,
  keys = 'Ctrl-C interrupts, Ctrl-\\ detaches',
): Elapsed {
  const began = performance.now() - process.durationMs;
  const elapsedMs = (): number => performance.now() - began;
  // A timer may fire a fraction of a millisecond early.
  const ticked = (): string => formatDuration(Math.max(TICK_MS, elapsedMs()));
  const what = process.name ?? process.command;
  const tick = out.watched
    ? setInterval(() => out.live(`${ticked()}  ${keys}  ${what}`), TICK_MS)
    : undefined;
  return {
    elapsed: () => formatDuration(elapsedMs()),
    stop: () => {
      clearInterval(tick);
      out.endLive();
    },
  };
}
