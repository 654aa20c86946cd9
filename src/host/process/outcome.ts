// Determines the outcome of a child from its status and from what we did to it.

import type { Outcome } from '../../protocol/process.ts';
import type { ExitStatus } from '../child/child.ts';

export function outcomeOf(
  status: ExitStatus,
  sentBy: ReadonlyMap<string, string> | undefined,
  timedOutAfterMs: number | undefined,
): Outcome {
  if (timedOutAfterMs !== undefined)
    return { kind: 'timeout', afterMs: timedOutAfterMs, ...status };
  if (status.code !== undefined) return { kind: 'exit', code: status.code };
  // Other code reaped it: the status is unknown.
  if (status.signal === undefined)
    return { kind: 'lost', reason: 'its exit status went to another part of this program' };
  const by = sentBy?.get(status.signal);
  if (by !== undefined) return { kind: 'signal', signal: status.signal, by };
  if (status.oom === true) return { kind: 'oom', signal: status.signal };
  return { kind: 'signal', signal: status.signal, by: 'outside' };
}
