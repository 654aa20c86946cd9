// Interrupts: Ctrl-C and TERM that this command receives, sent on to the process it shows. The third Ctrl-C lets go of
// the process instead; Ctrl-\ does so at once.

import type { KeeperLink } from '../keeper/link.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { Output } from './output/output.ts';

const FORWARDED = ['SIGINT', 'SIGTERM'] as const;
const LETS_GO_AT = 3;
/** The key Ctrl-\ of a terminal. */
const DETACH = 'SIGQUIT';

export class Interrupts {
  private readonly out: Output;
  private readonly letGo = new AbortController();
  private readonly early: NodeJS.Signals[] = [];
  private presses = 0;
  private send: ((signal: NodeJS.Signals) => void) | undefined;

  constructor(out: Output) {
    this.out = out;
    for (const signal of FORWARDED) process.on(signal, this.received);
    process.on(DETACH, this.detached);
  }

  /** Aborted when the person has let go of the process. */
  get signal(): AbortSignal {
    return this.letGo.signal;
  }

  /** It was let go of on purpose, not because it would not end. */
  get detachedByKey(): boolean {
    return this.letGo.signal.reason === DETACH;
  }

  /** From here on, and what came before there was anyone to send it to. */
  sendTo(host: KeeperLink, { id, owner }: ProcessInfo, by: string): void {
    this.send = (signal) => {
      // It may have ended in the same moment; then there is nobody left to tell.
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
    this.letGo.abort(DETACH);
  };

  private readonly received = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGINT') {
      this.presses += 1;
      void this.out.breakLine();
    }
    if (this.presses >= LETS_GO_AT) {
      this.letGo.abort();
      return;
    }
    if (this.presses === LETS_GO_AT - 1)
      void this.out.note('press Ctrl-C again to detach and leave it running.');
    if (this.send) this.send(signal);
    else this.early.push(signal);
  };
}
