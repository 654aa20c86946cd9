// A child on real pipes: one for both outputs (their true order) or one each, and one for its input or the null device.

import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';

import { HoldfastError } from '../protocol/errors.ts';
import type { Stream } from '../protocol/event.ts';
import type { LaunchPlan } from '../protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from './child.ts';
import { ChildInput, type ChildTools, openInput, openOutput, stdinClosed } from './child-socket.ts';
import { checkPlan, explainStart } from './spawn-error.ts';

/** Descriptors of a started child that are ours. */
interface Ends {
  readonly pid: number;
  readonly outputs: readonly { readonly fd: number; readonly stream: Stream }[];
  readonly input: number | undefined;
}

interface Output {
  readonly fd: number;
  readonly stream: Stream;
  readonly socket: Socket;
}

export async function startPipeChild(
  plan: LaunchPlan,
  listener: ChildListener,
  tools: ChildTools,
): Promise<Child> {
  checkPlan(plan);
  const birth = tools.reaper.expect();
  try {
    const child = new PipeChild(await spawnOnPipes(plan, tools), listener, tools);
    birth.register(child.pid, (status) => child.rootEnded(status));
    return child;
  } catch (error) {
    birth.failed();
    throw error;
  }
}

async function spawnOnPipes(plan: LaunchPlan, { posix }: ChildTools): Promise<Ends> {
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
    const stdio = {
      ...(inputRead === undefined ? {} : { input: inputRead }),
      output: outputWrite,
      errors: errorsWrite ?? outputWrite,
    };
    const pid = await posix.spawn({ ...plan, stdio });
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
  private readonly tools: ChildTools;
  private readonly open = new Set<Output>();
  private readonly input: ChildInput | undefined;
  private listener: ChildListener | undefined;

  constructor({ pid, outputs, input }: Ends, listener: ChildListener, tools: ChildTools) {
    this.pid = pid;
    this.tools = tools;
    this.listener = listener;
    this.input = input === undefined ? undefined : new ChildInput(openInput(input));
    for (const { fd, stream } of outputs) {
      const output: Output = {
        fd,
        stream,
        socket: openOutput({
          fd,
          readBuffer: tools.readBuffer,
          writable: false,
          received: (bytes) => this.listener?.output(stream, bytes),
          over: () => this.streamEnded(output),
        }),
      };
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
    for (const { socket } of this.open) socket.pause();
  }

  resume(): void {
    for (const { socket } of this.open) socket.resume();
  }

  release(): void {
    this.listener = undefined;
    this.input?.release();
    for (const { socket } of this.open) socket.destroy();
    this.open.clear();
  }

  /** The reaper's call. What the pipes hold now is delivered first, even while reading is paused. */
  rootEnded(status: ExitStatus): void {
    const finished = [...this.open].filter((output) => this.drain(output));
    this.listener?.exited(status);
    for (const output of finished) this.streamEnded(output);
  }

  /** Delivers what is in the pipe at this moment and no more: a grandchild may go on writing for ever. */
  private drain({ fd, stream, socket }: Output): boolean {
    const { posix, readBuffer } = this.tools;
    // Node closes the descriptor when it destroys the socket; the number may mean another file after that.
    if (socket.destroyed) return false;
    let left = posix.readableBytes(fd);
    while (left > 0 && !socket.destroyed) {
      const count = posix.readNow(fd, readBuffer.subarray(0, Math.min(left, readBuffer.length)));
      if (!count) break;
      left -= count;
      this.listener?.output(stream, readBuffer.subarray(0, count));
    }
    return !socket.destroyed && posix.atEnd(fd);
  }

  private streamEnded(output: Output): void {
    output.socket.destroy();
    if (this.open.delete(output) && this.open.size === 0) this.listener?.ended();
  }
}
