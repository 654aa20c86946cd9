// A child through Node's child_process, where the system calls of posix.ts are not available. It does not guarantee: the
// order between the two outputs of a merged child (they are two streams), `/dev/stderr` in the child (Node's pipes are
// sockets), that descriptors which Node inherited are closed, input for a grandchild after the exit (Node closes it), and
// that a file of unknown format is refused (execvp passes it to sh).

import { type ChildProcess, spawn } from 'node:child_process';

import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Stream } from '../../protocol/event.ts';
import type { LaunchPlan } from '../../protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from './child.ts';
import { stdinClosed } from './descriptor.ts';
import { checkPlan, spawnError } from '../start/spawn-error.ts';

/** `explain` adds the cause of a kill to the exit status. */
export async function startNodeChild(
  plan: LaunchPlan,
  explain: (status: ExitStatus) => ExitStatus = (status) => status,
): Promise<Child> {
  if (plan.streams === 'pty') {
    throw new HoldfastError('unsupported', 'terminals need system calls that are missing here');
  }
  checkPlan(plan);
  const started = spawnThroughNode(plan);
  await new Promise<void>((resolve, reject) => {
    started.once('spawn', resolve);
    started.once('error', (error) => {
      // Node does not close the pipes of a failed start.
      for (const stream of started.stdio) stream?.destroy();
      reject(startError(error, plan));
    });
  });
  return new NodeChild(started, plan, explain);
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
      // setsid(2)
      detached: true,
      stdio: [plan.stdin === 'pipe' ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    });
  } catch (error) {
    // Node throws some errors (E2BIG) and emits the others.
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
  private exitReported = false;

  constructor(
    started: ChildProcess,
    plan: LaunchPlan,
    explain: (status: ExitStatus) => ExitStatus,
  ) {
    this.pid = started.pid ?? -1;
    this.process = started;
    this.read('stdout', plan);
    this.read('stderr', plan);
    // The callback of a write reports its error; nobody needs the error of a kill.
    started.stdin?.on('error', () => {});
    started.on('error', () => {});
    started.once('exit', (code, signal) =>
      this.rootEnded(explain(signal ? { signal } : { code: code ?? -1 })),
    );
  }

  listen(listener: ChildListener): void {
    this.listener = listener;
  }

  async write(bytes: Buffer): Promise<void> {
    const { stdin } = this.process;
    if (!stdin?.writable) throw stdinClosed();
    await new Promise<void>((resolve, reject) => {
      stdin.write(bytes, (error) => {
        // Node reports a pending write as done when its stream is destroyed.
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
   * Node cannot tell what a stream holds now. One whole turn of the event loop with reading switched on delivers up to 32
   * buffers of 64 KiB per stream, more than the kernel holds for a socket by default. With a larger socket buffer, output
   * can still come after the exit, but always before `ended`.
   */
  private rootEnded(status: ExitStatus): void {
    this.exited = status;
    this.flow(true);
    setImmediate(() => setImmediate(() => this.reportExit()));
  }

  private reportExit(): void {
    if (this.exitReported || !this.exited) return;
    this.exitReported = true;
    if (this.paused) this.flow(false);
    this.listener?.exited(this.exited);
  }

  private streamEnded(): void {
    this.openStreams -= 1;
    if (this.openStreams > 0) return;
    this.reportExit();
    this.listener?.ended();
  }
}
