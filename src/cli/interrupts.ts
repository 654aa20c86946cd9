// Forwards Ctrl-C and SIGTERM to the process that a command shows. The third Ctrl-C detaches instead; Ctrl-\ detaches
// at once.

import type { KeeperLink } from '../keeper/link.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { Output } from './output/output.ts';

const FORWARDED = ['SIGINT', 'SIGTERM'] as const;
const DETACHES_AT = 3;
/** The key Ctrl-\ of a terminal. */
const DETACH = 'SIGQUIT';

export class Interrupts {
  private readonly out: Output;
  private readonly detach = new AbortController();
  private readonly early: NodeJS.Signals[] = [];
  private presses = 0;
  private send: ((signal: NodeJS.Signals) => void) | undefined;

  constructor(out: Output) {
    this.out = out;
    for (const signal of FORWARDED) process.on(signal, this.received);
    process.on(DETACH, this.detached);
  }

  /** Aborted when the person detaches. */
  get signal(): AbortSignal {
    return this.detach.signal;
  }

  /** Detached by Ctrl-\, not by the third Ctrl-C. */
  get detachedByKey(): boolean {
    return this.detach.signal.reason === DETACH;
  }

  /** Sends the signals that have arrived already, and all later ones. */
  sendTo(host: KeeperLink, { id, owner }: ProcessInfo, by: string): void {
    this.send = (signal) => {
      // The process may have just exited.
      host.signal(owner, { id, signal, by }).catch(() => undefined);
    };
    for (const signal of this.early.splice(0)) this.send(signal);
  }

  close(): void {
    for (const signal of FORWARDED) process.off(signal, this.received);
    process.off(DETACH, this.detached);
  }

  private readonly detached = (): void => {
    void this.out.breakLine();
    this.detach.abort(DETACH);
  };

  private readonly received = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGINT') {
      this.presses += 1;
      void this.out.breakLine();
    }
    if (this.presses >= DETACHES_AT) {
      this.detach.abort();
      return;
    }
    if (this.presses === DETACHES_AT - 1)
      void this.out.note('press Ctrl-C again to detach and leave it running.');
    if (this.send) this.send(signal);
    else this.early.push(signal);
  };
}
