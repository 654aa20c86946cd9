// Starts children: with system calls where these are available, otherwise through Node.

import { HoldfastError } from '../../protocol/errors.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child } from './child.ts';
import { createReadBuffer, type ChildTools } from './descriptor.ts';
import { startNodeChild } from './node-child.ts';
import { OomCounter } from '../../system/oom.ts';
import { startPipeChild } from './pipe-child.ts';
import { loadPosix, posixProblem } from '../../system/posix.ts';
import { startPtyChild } from './pty-child.ts';
import { Poller } from './poller.ts';
import { Reaper, type ReaperOptions } from './reaper.ts';

export interface ChildrenOptions {
  /** Become the subreaper of every descendant. Only for a program that starts no children through Node. */
  readonly adopts: boolean;
  readonly kind?: 'posix' | 'node' | undefined;
  /** A child or an orphan of this process has been reaped. */
  readonly reaped: (pid: number) => void;
  readonly accountFor?: ReaperOptions['accountFor'];
}

export class Children {
  readonly kind: 'posix' | 'node';
  /** We are the subreaper: the kernel reports the exit of every orphan to us. */
  readonly adopts: boolean;
  private readonly tools: ChildTools | undefined;
  private readonly oom = new OomCounter();

  constructor(options: ChildrenOptions) {
    const posix = options.kind === 'node' ? undefined : loadPosix();
    if (options.kind === 'posix' && !posix) {
      throw new HoldfastError(
        'unsupported',
        `System calls cannot be made here: ${posixProblem() ?? 'unknown'}.`,
      );
    }
    this.kind = posix ? 'posix' : 'node';
    this.adopts = posix !== undefined && options.adopts;
    if (!posix) return;
    if (this.adopts) posix.setSubreaper(true);
    const explain: ReaperOptions['explain'] = (status) => this.oom.explain(status);
    const { reaped: onReaped, accountFor } = options;
    const reaper = new Reaper({ posix, adopts: this.adopts, onReaped, accountFor, explain });
    const poller = new Poller(posix);
    this.tools = { posix, reaper, poller, readBuffer: createReadBuffer() };
  }

  start(plan: LaunchPlan): Promise<Child> {
    if (!this.tools) return startNodeChild(plan, (status) => this.oom.explain(status));
    return plan.streams === 'pty'
      ? startPtyChild(plan, this.tools)
      : startPipeChild(plan, this.tools);
  }

  /** Tests the fast path for reading output, and replaces it if it does not work. Names what is used. */
  async checkPoll(): Promise<'koffi' | 'thread' | 'node'> {
    return this.tools ? this.tools.poller.check() : 'node';
  }

  /** Whether this is a child that we started and have not reaped. */
  isRoot(pid: number): boolean {
    return this.tools?.reaper.has(pid) ?? false;
  }

  close(): void {
    this.oom.close();
    this.tools?.reaper.close();
    this.tools?.poller.close();
  }
}
