// Who may type into a terminal: everyone, or for a while only the holder of its keyboard, so that a person and an agent
// do not type into the same line.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { KeyboardNote } from '../../protocol/run.ts';

interface Held {
  readonly sinceUs: number;
  readonly holder: string;
  readonly untilUs: number;
  /** Replies of the server to queries of the program pass. */
  readonly answers: boolean;
}

interface TakeOptions {
  readonly steal?: boolean | undefined;
  readonly answers?: boolean | undefined;
}

export class Keyboard {
  private readonly clock: Clock;
  private held: Held | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Takes it, or holds it for longer; 0 gives it back. Its holder keeps it until then, unless it is stolen. Answers what
   * that changed; undefined when it was only renewed.
   */
  take(
    holder: string,
    forMs: number,
    options: TakeOptions = {},
  ): KeyboardNote['action'] | undefined {
    const { steal = false, answers = false } = options;
    if (!steal) this.admit(holder);
    const before = this.current();
    const now = this.clock.nowUs();
    const sinceUs = before?.holder === holder ? before.sinceUs : now;
    this.held = forMs > 0 ? { holder, sinceUs, untilUs: now + forMs * 1000, answers } : undefined;
    if (forMs === 0) return before ? 'given' : undefined;
    if (!before) return 'taken';
    return before.holder === holder ? undefined : 'forced';
  }

  /** It is held, and the holder's own terminal answers what programs ask. */
  get isAnswered(): boolean {
    return this.current()?.answers === false;
  }

  admit(holder: string | undefined, isReply = false): void {
    const held = this.current();
    if (!held || held.holder === holder || (isReply && held.answers)) return;
    const seconds = Math.floor((this.clock.nowUs() - held.sinceUs) / 1e6);
    const problem = `The keyboard of this terminal is held by ${held.holder}, for ${seconds} s now.`;
    throw new HoldfastError('keyboard_held', problem, { holder: held.holder });
  }

  private current(): Held | undefined {
    return this.held && this.held.untilUs > this.clock.nowUs() ? this.held : undefined;
  }
}
