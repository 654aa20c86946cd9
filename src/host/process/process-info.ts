// The description of a process for a caller: facts, state, and counts of its output.

import type { ProcessInfo } from '../../protocol/process.ts';
import { Journal } from '../../journal/write/journal.ts';
import type { HeldProcess } from './held-process.ts';
import { byteCounts } from './views.ts';

/** Whether some of its output is only in memory. */
export function isDegraded({ journal }: Pick<HeldProcess, 'journal'>): boolean {
  return journal instanceof Journal && journal.degraded !== undefined;
}

export function infoOf(process: HeldProcess): ProcessInfo {
  const { facts, outcome, exitedAtMs, closedAtMs, lastOutputAtMs, size } = process;
  const degraded = process.journal instanceof Journal ? process.journal.degraded : undefined;
  const usage = process.use.usage(process.settled);
  const { id, owner, command, argv, cwd, pid, streams, stdin, startedAtMs } = facts;
  return {
    id,
    owner,
    command,
    argv,
    cwd,
    pid,
    streams,
    stdin,
    ...(facts.name !== undefined && { name: facts.name }),
    ...(facts.key !== undefined && { key: facts.key }),
    ...(facts.labels && { labels: facts.labels }),
    ...(facts.lease !== undefined && { lease: facts.lease }),
    ...(size && { size }),
    ...(facts.terminal && { terminal: facts.terminal }),
    state: process.state,
    settled: process.settled,
    ...(outcome && { outcome }),
    ...(outcome && usage && { usage }),
    ...(process.causes.length > 0 && { causes: process.causes }),
    ...(facts.confinement && { confinement: facts.confinement }),
    startedAtMs,
    ...(exitedAtMs !== undefined && { exitedAtMs }),
    ...(closedAtMs !== undefined && { closedAtMs }),
    durationMs: process.durationMs(),
    ...(lastOutputAtMs !== undefined && { lastOutputAtMs }),
    seq: process.journal.visibleSeq,
    bytes: byteCounts(process.journal),
    ...(degraded !== undefined && { degraded }),
  };
}
