// A listener that records the calls of a child, and a way to start children in tests. `endAll` ends all of them.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Stream } from '../../src/protocol/event.ts';
import type { LaunchPlan } from '../../src/protocol/process.ts';
import type { Child, ChildListener, ExitStatus } from '../../src/host/child/child.ts';
import { type ChildTools, createReadBuffer } from '../../src/host/child/descriptor.ts';
import { loadPosix, type Posix, posixProblem } from '../../src/system/posix.ts';
import { Poller } from '../../src/host/child/poller.ts';
import { Reaper, type ReaperOptions } from '../../src/host/child/reaper.ts';

export class Recorder implements ChildListener {
  readonly chunks: { readonly stream: Stream; readonly bytes: Buffer }[] = [];
  /** The calls in order; consecutive calls of `output` count as one. */
  readonly calls: ('output' | 'exited' | 'ended')[] = [];
  status: ExitStatus | undefined;
  #wake: (() => void) | undefined;

  output(stream: Stream, bytes: Buffer): void {
    // Only lent: copied.
    this.chunks.push({ stream, bytes: Buffer.from(bytes) });
    if (this.calls.at(-1) !== 'output') this.calls.push('output');
    this.#wake?.();
  }

  exited(status: ExitStatus): void {
    this.status = status;
    this.calls.push('exited');
    this.#wake?.();
  }

  ended(): void {
    this.calls.push('ended');
    this.#wake?.();
  }

  bytes(stream?: Stream): Buffer {
    const wanted = this.chunks.filter((chunk) => stream === undefined || chunk.stream === stream);
    return Buffer.concat(wanted.map((chunk) => chunk.bytes));
  }

  text(stream?: Stream): string {
    return this.bytes(stream).toString();
  }

  get size(): number {
    return this.chunks.reduce((total, { bytes }) => total + bytes.length, 0);
  }

  /** Checked after every call. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async printed(text: string): Promise<void> {
    await this.until(() => this.text().includes(text));
  }

  async exit(): Promise<ExitStatus> {
    await this.until(() => this.status !== undefined);
    return this.status ?? {};
  }

  /** Exited and ended, in any order. */
  async done(): Promise<ExitStatus> {
    await this.until(() => this.calls.includes('exited') && this.calls.includes('ended'));
    return this.status ?? {};
  }
}

export function requirePosix(): Posix {
  const posix = loadPosix();
  if (!posix) throw new Error(`no system calls: ${posixProblem()}`);
  return posix;
}

type Start = (plan: LaunchPlan, tools: ChildTools) => Promise<Child>;

/** Starts children and ends what is left of them. */
export class Nursery {
  readonly posix = requirePosix();
  readonly reaper: Reaper;
  readonly tools: ChildTools;
  readonly #started: Child[] = [];

  constructor(options: Pick<Partial<ReaperOptions>, 'adopts' | 'onOrphan' | 'onReaped'> = {}) {
    this.reaper = new Reaper({ posix: this.posix, adopts: false, ...options });
    this.tools = {
      posix: this.posix,
      reaper: this.reaper,
      poller: new Poller(this.posix),
      readBuffer: createReadBuffer(),
    };
  }

  async start(start: Start, plan: LaunchPlan): Promise<{ child: Child; recorder: Recorder }> {
    const recorder = new Recorder();
    const child = await start(plan, this.tools);
    child.listen(recorder);
    this.#started.push(child);
    return { child, recorder };
  }

  async endAll(): Promise<void> {
    const living = this.reaper.pids();
    for (const child of this.#started) {
      if (living.includes(child.pid)) process.kill(-child.pid, 'SIGKILL');
      child.release();
    }
    await turnsUntil(() => this.reaper.pids().length === 0);
    this.reaper.close();
    this.tools.poller.close();
  }
}

export function planOf(argv: readonly string[], options: Partial<LaunchPlan> = {}): LaunchPlan {
  return {
    file: argv[0] ?? '',
    argv,
    env: [`PATH=${process.env['PATH']}`, 'LANG=C'],
    cwd: '/',
    streams: 'merged',
    stdin: 'none',
    size: { cols: 80, rows: 24 },
    ...options,
  };
}

export function shellPlan(script: string, options: Partial<LaunchPlan> = {}): LaunchPlan {
  return planOf(['/bin/sh', '-c', script], options);
}

/** For conditions without a notification: checked once per turn of the event loop. */
export async function turnsUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await nextTurn();
}

/** Whether a process sleeps in the kernel because a pipe or terminal takes no more. */
export function blockedInWrite(pid: number): boolean {
  return /pipe_write|n_tty_write|tty_write|wait_woken/.test(
    readFileSync(`/proc/${pid}/wchan`, 'latin1'),
  );
}

/** Lines that say where they are, so that a loss, a repetition and an exchange all show. */
export function numberedLines(bytes: number): Buffer {
  let text = '';
  for (let line = 0; text.length < bytes; line += 1) text += `line ${line} of a burst\n`;
  return Buffer.from(`${text.slice(0, bytes - 1)}\n`);
}

/** What this process holds open, without what the walk itself opens. */
export function openDescriptors(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [`${fd} ${readlinkSync(`/proc/self/fd/${fd}`)}`];
    } catch {
      return [];
    }
  });
}
