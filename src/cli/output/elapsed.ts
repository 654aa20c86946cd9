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
  const elapsed = (): string => formatDuration(performance.now() - began);
  const what = process.name ?? process.command;
  const tick = out.watched
    ? setInterval(() => out.live(`${elapsed()}  ${keys}  ${what}`), TICK_MS)
    : undefined;
  return {
    elapsed,
    stop: () => {
      clearInterval(tick);
      out.endLive();
    },
  };
}
