// Interrupts: Ctrl-C and TERM that this command receives, sent on to the process it shows. The third Ctrl-C lets go of
// the process instead.

import type { KeeperLink } from '../keeper/link.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { Output } from './output.ts';

const FORWARDED = ['SIGINT', 'SIGTERM'] as const;
const LETS_GO_AT = 3;

export class Interrupts {
  private readonly out: Output;
  private readonly letGo = new AbortController();
  private readonly early: NodeJS.Signals[] = [];
  private presses = 0;
  private send: ((signal: NodeJS.Signals) => void) | undefined;

  constructor(out: Output) {
    this.out = out;
    for (const signal of FORWARDED) process.on(signal, this.received);
  }

  /** Aborted when the person has given up on the process. */
  get signal(): AbortSignal {
    return this.letGo.signal;
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
  }

  private readonly received = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGINT') {
      this.presses += 1;
      void this.out.breakLine();
    }
    if (this.presses >= LETS_GO_AT) {
      this.letGo.abort();
      return;
    }
    if (this.presses === LETS_GO_AT - 1) void this.out.note('once more leaves it running.');
    if (this.send) this.send(signal);
    else this.early.push(signal);
  };
}
