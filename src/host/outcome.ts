// How a child ended, told from its status and from what we did to it.

import type { Outcome } from '../protocol/process.ts';
import type { ExitStatus } from './child.ts';

export interface SentSignal {
  readonly signal: string;
  readonly by: string;
}

export function outcomeOf(
  status: ExitStatus,
  sent: readonly SentSignal[],
  timedOutAfterMs: number | undefined,
): Outcome {
  if (timedOutAfterMs !== undefined)
    return { kind: 'timeout', afterMs: timedOutAfterMs, ...status };
  if (status.code !== undefined) return { kind: 'exit', code: status.code };
  // Somebody else took the status: it is not known, and nothing is made up.
  if (status.signal === undefined)
    return { kind: 'lost', reason: 'its exit status went to another part of this program' };
  const sender = sent.findLast(({ signal }) => signal === status.signal);
  if (sender) return { kind: 'signal', signal: status.signal, by: sender.by };
  if (status.oom === true) return { kind: 'oom', signal: status.signal };
  return { kind: 'signal', signal: status.signal, by: 'outside' };
}
