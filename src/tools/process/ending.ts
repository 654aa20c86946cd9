// The state of a process in the fields and words of the tools: an exit code only if there is one.

import type { Outcome, ProcessInfo, Usage } from '../../protocol/process.ts';
import { formatDuration } from '../duration.ts';

export interface Status {
  readonly running: boolean;
  readonly exit_code?: number;
  readonly signal?: string;
}

export function statusOf({ outcome }: Pick<ProcessInfo, 'outcome'>): Status {
  if (!outcome) return { running: true };
  return {
    running: false,
    ...('code' in outcome && { exit_code: outcome.code }),
    ...('signal' in outcome && { signal: outcome.signal }),
  };
}

export function succeeded(outcome: Outcome | undefined): boolean {
  return outcome?.kind === 'exit' && outcome.code === 0;
}

/** What the exit code does not say. */
export function describeOutcome(outcome: Outcome | undefined): string | undefined {
  if (!outcome) return undefined;
  switch (outcome.kind) {
    case 'exit':
      return undefined;
    case 'signal':
      return `ended by ${outcome.signal}, ${outcome.by === 'outside' ? 'sent from outside' : `sent by ${outcome.by}`}${outcome.maybeOom ? '; perhaps memory ran out' : ''}`;
    case 'timeout':
      return `ended by its hard timeout after ${formatDuration(outcome.afterMs)}`;
    case 'oom':
      return 'ended by the kernel because of its memory limit';
    case 'lost':
      return `how it ended is unknown: ${outcome.reason}`;
  }
}

export function quietMs(process: ProcessInfo, wallMs: number): { last_output_ms_ago?: number } {
  const { lastOutputAtMs } = process;
  if (lastOutputAtMs === undefined) return {};
  return { last_output_ms_ago: Math.max(0, Math.round(wallMs - lastOutputAtMs)) };
}

/** Less is not worth the words. */
const WORTH_MS = 1000;
const WORTH_BYTES = 512 * 1024 * 1024;

/** "12.3s of processor time, 640 MiB of memory at its peak"; undefined for little. */
export function costWords(usage: Usage | undefined): string | undefined {
  if (!usage) return undefined;
  const { userMs, systemMs, peakMemoryBytes = 0, complete } = usage;
  const parts = [
    userMs + systemMs >= WORTH_MS && `${formatDuration(userMs + systemMs)} of processor time`,
    peakMemoryBytes >= WORTH_BYTES &&
      `${Math.round(peakMemoryBytes / 1024 ** 2)} MiB of memory at its peak`,
  ].filter((part) => part !== false);
  if (parts.length === 0) return undefined;
  return `${complete ? '' : 'at least '}${parts.join(', ')}`;
}
