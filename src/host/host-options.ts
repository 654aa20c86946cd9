// The options of a host.

import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import type { Limits } from '../protocol/limits.ts';
import type { InheritedEnvironment } from './start/launch-plan.ts';
import type { Transition } from './transitions.ts';

export interface HostOptions {
  /** The state folder. Only one host may use it at a time. */
  readonly folder: string;
  /** What children inherit. */
  readonly surroundings: InheritedEnvironment;
  readonly version?: string;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly disk?: Disk;
  readonly report?: (message: string) => void;
  /** Called at every change of the state of a process. */
  readonly transition?: (transition: Transition) => void;
  /** Become the subreaper of every descendant. Only in a program of its own: it would reap other children too. */
  readonly adopts?: boolean;
  readonly children?: 'posix' | 'node';
  /** The keeper that had the folder before, for the outcome of processes that it lost. */
  readonly earlierPid?: number | undefined;
  /** Folders with sockets and secrets that a sandbox never shows; by default `folder`. */
  readonly hidden?: readonly string[];
  /** Give each process a cgroup of its own where that is possible (default: as `adopts`). */
  readonly groups?: boolean;
  /** A bubblewrap in another place than the usual ones. */
  readonly bubblewrap?: string | undefined;
}
