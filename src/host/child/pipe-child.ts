// A child on real pipes: one for both outputs (their true order) or one each, and one for its input or the null device.

import { closeSync } from 'node:fs';

import { HoldfastError } from '../../protocol/errors.ts';
import type { Stream } from '../../protocol/event.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from './child.ts';
import { type ChildTools, Descriptor, stdinClosed } from './descriptor.ts';
import { signalGroup } from '../descendants/descendants.ts';
import { SHELL } from '../start/launch-plan.ts';
import { refuseReserved } from '../../system/descriptor-reserve.ts';
import { checkPlan, explainStart } from '../start/spawn-error.ts';

/** Descriptors of a started child that are ours. */
interface Ends {
  readonly pid: number;
  readonly outputs: readonly { readonly fd: number; readonly stream: Stream }[];
  readonly input: number | undefined;
}

export async function startPipeChild(
  plan: LaunchPlan,
  listener: ChildListener,
  tools: ChildTools,
): Promise<Child> {
  checkPlan(plan);
  // The shell is in memory and begins at once. One alone is started sooner here, many together in threads.
  const here = plan.file === SHELL && !plan.remote && tools.reaper.quiet;
  const birth = tools.reaper.expect();
  let ends: Ends;
  try {
    ends = await spawnOnPipes(plan, tools, here);
  } catch (error) {
    birth.failed();
    throw error;
  }
  let child: PipeChild | undefined;
  birth.register(ends.pid, (status) => child?.rootEnded(status));
  try {
    child = new PipeChild(ends, listener, tools);
    return child;
  } catch (error) {
    // It runs already, and nobody could read it: it is ended, and reaped like any other.
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

  constructor({ pid, outputs, input }: Ends, listener: ChildListener, tools: ChildTools) {
    this.pid = pid;
    this.listener = listener;
    this.input = input === undefined ? undefined : new Descriptor(input, tools);
    for (const { fd, stream } of outputs) {
      const output = new Descriptor(fd, tools, {
        received: (bytes) => this.listener?.output(stream, bytes),
        over: () => {
          this.streamEnded(output);
          // Most streams end because their process does.
          if (this.open.size === 0) tools.reaper.reapAtOnce(this.pid);
        },
      });
      this.open.add(output);
    }
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

  /** The reaper's call. What the pipes hold now is delivered first, even while reading is paused. */
  rootEnded(status: ExitStatus): void {
    const finished = [...this.open].filter((output) => output.drain());
    // Their end first: whoever hears of the exit then writes both down together.
    for (const output of finished) this.streamEnded(output);
    this.listener?.exited(status);
    for (const output of finished) output.close();
  }

  private streamEnded(output: Descriptor): void {
    if (this.open.delete(output) && this.open.size === 0) this.listener?.ended();
  }
}
