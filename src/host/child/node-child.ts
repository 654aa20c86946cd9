// A child through Node's own child_process, where the system calls of posix.ts cannot be had. What it does not promise:
// the order between the two outputs of a merged child (they are two streams, read in turn), `/dev/stderr` in the child
// (Node's pipes are sockets), that descriptors which Node itself inherited stay out of it, input for a grandchild after
// the exit (Node closes it then), and that a file of no known format is refused (execvp gives it to sh).

import { type ChildProcess, spawn } from 'node:child_process';

import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Stream } from '../../protocol/event.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from './child.ts';
import { stdinClosed } from './descriptor.ts';
import { checkPlan, spawnError } from '../start/spawn-error.ts';

export async function startNodeChild(plan: LaunchPlan, listener: ChildListener): Promise<Child> {
  if (plan.streams === 'pty') {
    throw new HoldfastError('unsupported', 'terminals need system calls that are missing here');
  }
  checkPlan(plan);
  const started = spawnThroughNode(plan);
  await new Promise<void>((resolve, reject) => {
    started.once('spawn', resolve);
    started.once('error', (error) => {
      // Node leaves the pipes of a failed start to the garbage collector.
      for (const stream of started.stdio) stream?.destroy();
      reject(startError(error, plan));
    });
  });
  return new NodeChild(started, plan, listener);
}

function spawnThroughNode(plan: LaunchPlan): ChildProcess {
  const [argv0 = plan.file, ...args] = plan.argv;
  const variables = [...(plan.commonEnv ?? []), ...plan.env].map((entry): [string, string] => {
    const equals = entry.indexOf('=');
    return [entry.slice(0, equals), entry.slice(equals + 1)];
  });
  try {
    return spawn(plan.file, args, {
      argv0,
      cwd: plan.cwd,
      env: Object.fromEntries(variables),
      // A session and group of its own.
      detached: true,
      stdio: [plan.stdin === 'pipe' ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    // Node throws what it does not expect (E2BIG) and tells the rest by an event.
    throw startError(error, plan);
  }
}

function startError(error: unknown, plan: LaunchPlan): HoldfastError {
  return spawnError(errnoOf(error) ?? 'EINVAL', plan);
}

class NodeChild implements Child {
  readonly pid: number;
  private readonly process: ChildProcess;
  private listener: ChildListener | undefined;
  private paused = false;
  private openStreams = 2;
  private exited: ExitStatus | undefined;
  private toldExit = false;

  constructor(started: ChildProcess, plan: LaunchPlan, listener: ChildListener) {
    this.pid = started.pid ?? -1;
    this.process = started;
    this.listener = listener;
    this.read('stdout', plan);
    this.read('stderr', plan);
    // The write in question is told by its own callback; a failed kill is nobody's question here.
    started.stdin?.on('error', () => {});
    started.on('error', () => {});
    started.once('exit', (code, signal) =>
      this.rootEnded(signal ? { signal } : { code: code ?? -1 }),
    );
  }

  async write(bytes: Buffer): Promise<void> {
    const { stdin } = this.process;
    if (!stdin?.writable) throw stdinClosed();
    await new Promise<void>((resolve, reject) => {
      stdin.write(bytes, (error) => {
        // Node reports the write that was under way as done when its stream is destroyed.
        if (error || stdin.destroyed) reject(stdinClosed());
        else resolve();
      });
    });
  }

  endInput(): void {
    this.process.stdin?.end();
  }

  resize(): void {
    throw new HoldfastError('not_a_terminal', 'a process on pipes has no size');
  }

  echoes(): boolean {
    return true;
  }

  pause(): void {
    this.paused = true;
    this.flow(false);
  }

  resume(): void {
    this.paused = false;
    this.flow(true);
  }

  release(): void {
    this.listener = undefined;
    for (const stream of this.process.stdio) stream?.destroy();
  }

  private read(name: 'stdout' | 'stderr', plan: LaunchPlan): void {
    const stream: Stream = plan.streams === 'separate' ? name : 'merged';
    this.process[name]
      ?.on('data', (bytes: Buffer) => this.listener?.output(stream, bytes))
      .on('error', () => {})
      .once('close', () => this.streamEnded());
  }

  private flow(on: boolean): void {
    for (const stream of [this.process.stdout, this.process.stderr]) {
      if (on) stream?.resume();
      else stream?.pause();
    }
  }

  /**
   * Node gives no way to ask what a stream holds at this moment. One whole turn of the event loop, with reading switched
   * on, delivers what was readable when it began: all of it up to 32 buffers of 64 KiB per stream, which is more than
   * the kernel holds for a socket by default. A larger socket buffer, or a slow delivery inside the kernel, can still
   * put output after the exit. It is never lost: it comes before `ended`.
   */
  private rootEnded(status: ExitStatus): void {
    this.exited = status;
    this.flow(true);
    setImmediate(() => setImmediate(() => this.tellExit()));
  }

  private tellExit(): void {
    if (this.toldExit || !this.exited) return;
    this.toldExit = true;
    if (this.paused) this.flow(false);
    this.listener?.exited(this.exited);
  }

  private streamEnded(): void {
    this.openStreams -= 1;
    if (this.openStreams > 0) return;
    this.tellExit();
    this.listener?.ended();
  }
}
