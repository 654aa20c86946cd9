// What needs a person: a running terminal that asks, waits for input, or has been silent for long.

import type { Owner } from '../host-api.ts';

/**
 * asked: the program rang the bell or sent a notice (OSC 9, 777). reads: the kernel says that the program in the foreground is
 * blocked in a read of its terminal. quiet: it has printed nothing for the time that the caller chose.
 */
export type NeedReason = 'asked' | 'reads' | 'quiet';

export interface Need {
  readonly owner: Owner;
  readonly id: string;
  readonly name?: string;
  readonly command: string;
  readonly reason: NeedReason;
  /** When it asked, or printed last. */
  readonly atMs: number;
  /** The text of its notice, else its last line. */
  readonly text: string;
}
