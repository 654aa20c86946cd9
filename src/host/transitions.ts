// Changes of the state of a process, for a log.

import type { Outcome } from '../protocol/process.ts';

export interface Transition {
  /** recover: the disk works again, or the process was recovered from an earlier host. */
  readonly event: 'start' | 'exit' | 'settle' | 'close' | 'forget' | 'degrade' | 'recover';
  readonly process: { readonly owner: string; readonly id: string };
  /** Never contains a command or a value of an environment. */
  readonly reason: string;
}

export function outcomeReason(outcome: Outcome | undefined): string {
  switch (outcome?.kind) {
    case 'exit':
      return `exit ${outcome.code}`;
    case 'signal':
      return `${outcome.signal} by ${outcome.by}`;
    case 'timeout':
      return `hard timeout after ${outcome.afterMs} ms`;
    case 'oom':
      return `${outcome.signal}, out of memory`;
    case 'lost':
      return `lost: ${outcome.reason}`;
    case undefined:
      return 'running';
  }
}
