// Changes of the state of a process, as they are told to whoever keeps a log of them.

import type { Outcome } from '../protocol/process.ts';

export interface Transition {
  /** recover: the disk takes its output again, or it was taken up from an earlier host. */
  readonly event: 'start' | 'exit' | 'settle' | 'close' | 'forget' | 'degrade' | 'recover';
  readonly process: { readonly owner: string; readonly id: string };
  /** Never has a command or a value of an environment. */
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
