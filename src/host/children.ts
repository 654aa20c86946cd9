// How this host starts children: by the system's own calls where they can be had, otherwise through Node.

import { HoldfastError } from '../protocol/errors.ts';
import type { LaunchPlan } from '../protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from './child.ts';
import { createReadBuffer, type ChildTools } from './descriptor.ts';
import { startNodeChild } from './node-child.ts';
import { OomCounter } from './oom.ts';
import { startPipeChild } from './pipe-child.ts';
import { loadPosix, posixProblem } from './posix.ts';
import { startPtyChild } from './pty-child.ts';
import { Readiness } from './readiness.ts';
import { Reaper } from './reaper.ts';

export interface ChildrenOptions {
  /** Be the subreaper of every descendant, and reap them. Only for a program that starts no children through Node. */
  readonly adopts: boolean;
  readonly kind?: 'posix' | 'node' | undefined;
  readonly orphanEnded: () => void;
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
    const reaper = new Reaper({ posix, adopts: this.adopts, onOrphan: options.orphanEnded });
    const readiness = new Readiness(posix);
    this.tools = { posix, reaper, readiness, readBuffer: createReadBuffer() };
  }

  /** Nothing is told to the listener before this has returned. */
  start(plan: LaunchPlan, listener: ChildListener): Promise<Child> {
    const told = this.withCause(listener);
    if (!this.tools) return startNodeChild(plan, told);
    return plan.streams === 'pty'
      ? startPtyChild(plan, told, this.tools)
      : startPipeChild(plan, told, this.tools);
  }

  close(): void {
    this.tools?.reaper.close();
    this.tools?.readiness.close();
  }

  private withCause(listener: ChildListener): ChildListener {
    return {
      output: (stream, bytes) => listener.output(stream, bytes),
      ended: () => listener.ended(),
      exited: (status: ExitStatus) =>
        listener.exited(
          status.signal === 'SIGKILL' && this.oom.struck() ? { ...status, oom: true } : status,
        ),
    };
  }
}
