// What a host is opened with.

import type { Clock } from '../base/clock.ts';
import type { Disk } from '../base/disk.ts';
import type { Limits } from '../protocol/limits.ts';
import type { InheritedEnvironment } from './start/launch-plan.ts';
import type { Transition } from './transitions.ts';

export interface HostOptions {
  /** Where journals are kept. One host at a time. */
  readonly folder: string;
  /** What children inherit. */
  readonly surroundings: InheritedEnvironment;
  readonly version?: string;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly disk?: Disk;
  readonly report?: (message: string) => void;
  /** Told of every change of the state of a process. */
  readonly transition?: (transition: Transition) => void;
  /** Become the reaper of every descendant. Only in a program of its own: it would take other children's exits. */
  readonly adopts?: boolean;
  readonly children?: 'posix' | 'node';
}
