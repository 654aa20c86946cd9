// A child on pipes: one for both outputs (which keeps their order) or one each, and one for its input or /dev/null.

import { closeSync } from 'node:fs';

import { HoldfastError } from '../../protocol/errors.ts';
import type { Stream } from '../../protocol/event.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child, ChildListener, ExitStatus, RootUse } from './child.ts';
import { type ChildTools, Descriptor, stdinClosed } from './descriptor.ts';
import { signalGroup } from '../descendants/descendants.ts';
import { SHELL } from '../start/launch-plan.ts';
import { refuseReserved } from '../../system/descriptor-reserve.ts';
import { checkPlan, explainStart } from '../start/spawn-error.ts';

/** Our descriptors of a started child. */
interface Ends {
  readonly pid: number;
  readonly outputs: readonly { readonly fd: number; readonly stream: Stream }[];
  readonly input: number | undefined;
}

export async function startPipeChild(plan: LaunchPlan, tools: ChildTools): Promise<Child> {
  checkPlan(plan);
  // The shell is in the page cache, so its exec is fast. A single start is faster in this thread, many in the pool.
  const here = plan.file === SHELL && !plan.remote && tools.reaper.noRecentSpawn;
  const pending = tools.reaper.beginSpawn();
  let ends: Ends;
  try {
    ends = await spawnOnPipes(plan, tools, here);
  } catch (error) {
    pending.failed();
    throw error;
  }
  let child: PipeChild | undefined;
  pending.register(ends.pid, (status, used) => child?.rootEnded(status, used));
  try {
    child = new PipeChild(ends, tools);
    return child;
  } catch (error) {
    // It already runs, and we could not read its output: kill it; the reaper reaps it.
    signalGroup(ends.pid, 'SIGKILL');
    for (const fd of [ends.input, ...ends.outputs.map((output) => output.fd)]) {
      if (fd === undefined) continue;
      tools.poller.forget(fd);
      closeSync(fd);
    }
    throw explainStart(error, plan);
  }
}

async function spawnOnPipes(plan: LaunchPlan, { posix }: ChildTools, here: boolean): Promise<Ends> {
  const ours: number[] = [];
  const theirs: number[] = [];
  const outputPipe = (): [number, number] => {
    const [read, write] = posix.pipe();
    ours.push(read);
    theirs.push(write);
    return [read, write];
  };
  const inputPipe = (): [number, number] => {
    const [read, write] = posix.pipe();
    theirs.push(read);
    ours.push(write);
    return [read, write];
  };
  try {
    const [output, outputWrite] = outputPipe();
    const [errors, errorsWrite] = plan.streams === 'separate' ? outputPipe() : [];
    const [inputRead, input] = plan.stdin === 'pipe' ? inputPipe() : [];
    const stdio = { input: inputRead, output: outputWrite, errors: errorsWrite ?? outputWrite };
    refuseReserved(posix, ours);
    ours.forEach((fd) => posix.unblock(fd));
    const pid = await posix.spawn(plan, stdio, here);
    const outputs =
      errors === undefined
        ? [{ fd: output, stream: 'merged' as const }]
        : [
            { fd: output, stream: 'stdout' as const },
            { fd: errors, stream: 'stderr' as const },
          ];
    return { pid, outputs, input };
  } catch (error) {
    ours.forEach((fd) => closeSync(fd));
    throw explainStart(error, plan);
  } finally {
    theirs.forEach((fd) => closeSync(fd));
  }
}

class PipeChild implements Child {
  readonly pid: number;
  private readonly open = new Set<Descriptor>();
  private readonly input: Descriptor | undefined;
  private listener: ChildListener | undefined;

  constructor({ pid, outputs, input }: Ends, tools: ChildTools) {
    this.pid = pid;
    this.input = input === undefined ? undefined : new Descriptor(input, tools);
    for (const { fd, stream } of outputs) {
      const output = new Descriptor(fd, tools, {
        received: (bytes) => this.listener?.output(stream, bytes),
        over: () => {
          this.streamEnded(output);
          // Most streams end because their process exits.
          if (this.open.size === 0) tools.reaper.reapAtOnce(this.pid);
        },
      });
      this.open.add(output);
    }
  }

  listen(listener: ChildListener): void {
    this.listener = listener;
  }

  async write(bytes: Buffer): Promise<void> {
    if (!this.input) throw stdinClosed();
    await this.input.write(bytes);
  }

  endInput(): void {
    this.input?.end();
  }

  resize(): void {
    throw new HoldfastError('not_a_terminal', 'a process on pipes has no size');
  }

  echoes(): boolean {
    return true;
  }

  pause(): void {
    for (const output of this.open) output.pause();
  }

  resume(): void {
    for (const output of this.open) output.resume();
  }

  release(): void {
    this.listener = undefined;
    this.input?.close();
    for (const output of this.open) output.close();
    this.open.clear();
  }

  /** The reaper calls it. First delivers what the pipes hold now, even while reading is paused. */
  rootEnded(status: ExitStatus, used?: RootUse): void {
    const finished = [...this.open].filter((output) => output.drain());
    // Before the exit, so that the listener can record both together.
    for (const output of finished) this.streamEnded(output);
    this.listener?.exited(status, used);
    for (const output of finished) output.close();
  }

  private streamEnded(output: Descriptor): void {
    if (this.open.delete(output) && this.open.size === 0) this.listener?.ended();
  }
}
