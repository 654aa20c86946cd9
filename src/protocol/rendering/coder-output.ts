// The output and state of a process in coder's process API. The server renders plain requests with it, the keeper parked
// waits.

import type { Results } from '../host-api.ts';
import type { ProcessInfo } from '../process.ts';

export function coderOutput({ text, truncated, process }: Results['text']): unknown {
  return {
    output: text,
    ...(truncated && {
      truncated: {
        original_bytes: truncated.originalBytes,
        retained_bytes: truncated.retainedBytes,
        omitted_bytes: truncated.omittedBytes + truncated.cutLineBytes,
        strategy: truncated.strategy,
        cut_lines: truncated.cutLines,
      },
    }),
    ...coderEnding(process),
    command: process.command,
  };
}

/** `exit_code` is absent while it runs, and -1 for a process that ended without one; `outcome` has the details. */
export function coderEnding(process: ProcessInfo): Record<string, unknown> {
  const { outcome } = process;
  return {
    running: outcome === undefined,
    ...(outcome && { exit_code: exitCode(process) }),
    ...(outcome && 'signal' in outcome && { signal: outcome.signal }),
    ...(outcome && { outcome }),
    settled: process.settled,
    streams_open: process.state === 'running' || process.state === 'exited',
    pid: process.pid,
    duration_ms: process.durationMs,
    output_bytes: process.bytes.total,
  };
}

function exitCode({ outcome }: ProcessInfo): number {
  if (outcome?.kind === 'exit') return outcome.code;
  return outcome?.kind === 'timeout' ? (outcome.code ?? -1) : -1;
}
