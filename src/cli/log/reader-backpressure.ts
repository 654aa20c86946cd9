// The messages of a reader that slows a process down: that it still reads, and that it has left.

import { randomId } from '../../base/ids.ts';
import type { Page } from '../../protocol/host-api.ts';
import { PACE_BYTES, STILL_HERE_MS, UNPACED_BYTES } from '../../protocol/limits.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import type { Caller } from '../caller.ts';

export class Pacing {
  /** Its name among the readers that the process waits for. */
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

  /** This page is being written, which may take any time. */
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
    // After a lost keeper no process waits, and the next read reports the loss.
    await this.caller.ask((host) => host.read(owner, params)).catch(() => undefined);
  }
}
