// How this host starts children: by the system's own calls where they can be had, otherwise through Node.

import { HoldfastError } from '../../protocol/errors.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from './child.ts';
import { createReadBuffer, type ChildTools } from './descriptor.ts';
import { startNodeChild } from './node-child.ts';
import { OomCounter } from '../../system/oom.ts';
import { startPipeChild } from './pipe-child.ts';
import { loadPosix, posixProblem } from '../../system/posix.ts';
import { startPtyChild } from './pty-child.ts';
import { Poller } from './poller.ts';
import { Reaper } from './reaper.ts';

export interface ChildrenOptions {
  /** Be the subreaper of every descendant, and reap them. Only for a program that starts no children through Node. */
  readonly adopts: boolean;
  readonly kind?: 'posix' | 'node' | undefined;
  /** A child or an orphan of this process has been reaped. */
  readonly reaped: (pid: number) => void;
}

export class Children {
  readonly kind: 'posix' | 'node';
  /** True when the death of every descendant is told to us by the kernel. */
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
    const reaper = new Reaper({ posix, adopts: this.adopts, onReaped: options.reaped });
    const poller = new Poller(posix);
    this.tools = { posix, reaper, poller, readBuffer: createReadBuffer() };
  }

  /** Nothing is told to the listener before this has returned. */
  start(plan: LaunchPlan, listener: ChildListener): Promise<Child> {
    const told = this.withCause(listener);
    if (!this.tools) return startNodeChild(plan, told);
    return plan.streams === 'pty'
      ? startPtyChild(plan, told, this.tools)
      : startPipeChild(plan, told, this.tools);
  }

  /** Whether this is a child that was started here and has not been reaped. */
  isRoot(pid: number): boolean {
    return this.tools?.reaper.has(pid) ?? false;
  }

  close(): void {
    this.oom.close();
    this.tools?.reaper.close();
    this.tools?.poller.close();
  }

  private withCause(listener: ChildListener): ChildListener {
    return {
      output: (stream, bytes) => listener.output(stream, bytes),
      ended: () => listener.ended(),
      exited: (status: ExitStatus) => {
        // Asked at every exit, for the sake of the next one.
        const struck = this.oom.struck();
        listener.exited(struck && status.signal === 'SIGKILL' ? { ...status, oom: true } : status);
      },
    };
  }
}
