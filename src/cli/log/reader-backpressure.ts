// What a reader owes a process that it holds back: a sign of life while it has no room, and a word when it leaves.

import { randomId } from '../../base/ids.ts';
import type { Page } from '../../protocol/host-api.ts';
import { PACE_BYTES, STILL_HERE_MS, UNPACED_BYTES } from '../../protocol/limits.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';

export class Pacing {
  /** Its name among the readers that hold the process back. */
  readonly reader = randomId();
  private readonly caller: Caller;
  private readonly process: Pick<ProcessInfo, 'id' | 'owner'>;
  private readonly timer = setInterval(() => void this.say(PACE_BYTES), STILL_HERE_MS).unref();
  private after = 0;
  private ended = false;

  constructor(caller: Caller, process: Pick<ProcessInfo, 'id' | 'owner'>) {
    this.caller = caller;
    this.process = process;
  }

  /** This page is being given on, which may take as long as it takes. */
  delivers({ nextAfter, end }: Page): void {
    this.after = nextAfter;
    this.ended = end;
  }

  async over(): Promise<void> {
    clearInterval(this.timer);
    if (!this.ended) await this.say(UNPACED_BYTES);
  }

  private async say(paceBytes: number): Promise<void> {
    const { owner, id } = this.process;
    const params = { id, after: this.after, maxBytes: 1, paceBytes, reader: this.reader };
    // A keeper that is lost holds nobody, and whoever reads on learns of it.
    await this.caller.ask((host) => host.read(owner, params)).catch(() => undefined);
  }
}
