// How a process ended, in words for people and as the exit code of a command that waited for it.

import { constants } from 'node:os';
import type { Outcome, ProcessInfo } from '../../protocol/process.ts';
import { formatDuration } from '../arguments/units.ts';

/** The time to wait passed; the process keeps running. */
export const STILL_RUNNING_EXIT = 123;
/** A hard timeout ended it: what timeout(1) answers. */
const TIMEOUT_EXIT = 124;
/** Holdfast itself failed: nothing was started, or the outcome is unknown. */
export const FAILED_EXIT = 125;
const SIGNAL_BASE = 128;

export function outcomeWords(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'exit':
      return `exit ${outcome.code}`;
    case 'signal':
      return `${outcome.signal} ${sender(outcome.by)}`;
    case 'timeout':
      return `timeout after ${formatDuration(outcome.afterMs)}`;
    case 'oom':
      return 'out of memory';
    case 'lost':
      return 'lost';
  }
}

export function exitCodeOf(outcome: Outcome): number {
  switch (outcome.kind) {
    case 'exit':
      return outcome.code & 0xff;
    case 'signal':
    case 'oom':
      return SIGNAL_BASE + signalNumber(outcome.signal);
    case 'timeout':
      return TIMEOUT_EXIT;
    case 'lost':
      return FAILED_EXIT;
  }
}

/** What happened, where the exit code alone does not say it. */
export function endNote(outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case 'exit':
      return undefined;
    case 'signal':
      return `ended by ${outcome.signal}, sent ${sender(outcome.by)}${outcome.maybeOom ? '; perhaps memory ran out' : ''}.`;
    case 'timeout':
      return `ended by its hard timeout after ${formatDuration(outcome.afterMs)}.`;
    case 'oom':
      return 'ended by the kernel because of its memory limit.';
    case 'lost':
      return `how it ended is unknown: ${outcome.reason}.`;
  }
}

/** The state, with what is still alive or refused: for the columns of a list. */
export function stateWords(process: ProcessInfo): string {
  const { outcome, settled, degraded } = process;
  const parts = [
    ...(outcome ? [outcomeWords(outcome)] : []),
    ...(outcome && !settled ? ['descendants alive'] : []),
    ...(degraded === undefined ? [] : [`not stored: ${degraded}`]),
  ];
  return parts.join(', ');
}

/** "outside": the signal was not sent through the host. */
function sender(by: string): string {
  return by === 'outside' ? 'from outside' : `by ${by}`;
}

export function signalNumber(name: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return numbers[name] ?? 0;
}
