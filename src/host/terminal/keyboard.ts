// Who may type into a terminal: anyone, or for a while only the one who holds its keyboard, so that a person and an agent
// do not type into each other's lines.

import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';

export class Keyboard {
  private readonly clock: Clock;
  private held: { readonly holder: string; readonly untilUs: number } | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Takes it, or holds it for longer; 0 gives it back. Its holder keeps it until then, unless it is stolen. */
  take(holder: string, forMs: number, steal = false): void {
    if (!steal) this.admit(holder);
    this.held = forMs > 0 ? { holder, untilUs: this.clock.nowUs() + forMs * 1000 } : undefined;
  }

  get isHeld(): boolean {
    return this.held !== undefined && this.held.untilUs > this.clock.nowUs();
  }

  admit(holder: string | undefined): void {
    const { held } = this;
    if (!held || held.holder === holder || !this.isHeld) return;
    const problem = `The keyboard of this terminal is held by ${held.holder}.`;
    throw new HoldfastError('keyboard_held', problem, { holder: held.holder });
  }
}
