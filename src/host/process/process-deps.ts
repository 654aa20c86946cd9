// What a process needs of its host.

import type { Clock } from '../../base/clock.ts';
import type { GroupUse } from '../../system/confine/group-use.ts';
import type { HeldProcess } from './held-process.ts';

/** Reports to the host what the journal does not. */
export interface ProcessWatcher {
  exited(process: HeldProcess): void;
  closed(process: HeldProcess): void;
}

export interface ProcessDeps {
  readonly clock: Clock;
  readonly watcher: ProcessWatcher;
  readonly writeIds: number;
  readonly inputBytes: number;
  readonly recordInput: boolean;
  /** What the process's cgroup has counted. */
  readonly groupUse?: (() => GroupUse | undefined) | undefined;
}
