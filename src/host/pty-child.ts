// A child on a terminal: session leader, foreground group, and a controlling terminal of its own.

import { closeSync, constants, openSync } from 'node:fs';

import { errnoOf } from '../base/disk.ts';
import type { LaunchPlan, TerminalSize } from '../protocol/process.ts';
import type { Child, ChildListener, ChildTerminal, ExitStatus } from './child.ts';
import { type ChildTools, Descriptor } from './descriptor.ts';
import type { Posix } from './posix.ts';
import { PosixError } from './posix-library.ts';
import { checkPlan, explainStart, explainTerminal } from './spawn-error.ts';

// The kernel holds 8 KiB in a terminal's flip buffer and 4 KiB in its line discipline (drivers/tty/pty.c, n_tty.c):
// what is read beyond this was printed after the reading began.
const maxHeldBytes = 65_536;
const controlD = 0x04;

/** Descriptors of one terminal that are ours. */
interface Terminal {
  readonly name: string;
  readonly master: number;
  /**
   * The device, held open by us until the root process has ended. Without it a program that closes and reopens its
   * terminal looks like the end.
   */
  readonly hold: number;
}

export async function startPtyChild(
  plan: LaunchPlan,
  listener: ChildListener,
  tools: ChildTools,
): Promise<Child> {
  checkPlan(plan);
  const terminal = openTerminal(tools.posix, plan.size);
  const birth = tools.reaper.expect();
  try {
    const pid = await spawnOnTerminal(plan, terminal, tools.posix);
    const child = new PtyChild(pid, terminal, listener, tools);
    birth.register(pid, (status) => child.rootEnded(status));
    return child;
  } catch (error) {
    birth.failed();
    throw error;
  }
}

async function spawnOnTerminal(
  plan: LaunchPlan,
  terminal: Terminal,
  posix: Posix,
): Promise<number> {
  try {
    return await posix.spawn(plan, { terminal: terminal.name });
  } catch (error) {
    for (const fd of [terminal.master, terminal.hold]) closeSync(fd);
    throw explainStart(error, plan);
  }
}

function openTerminal(posix: Posix, { cols, rows }: TerminalSize): Terminal {
  const opened: number[] = [];
  try {
    const { master, name } = posix.openTerminal();
    opened.push(master);
    posix.setTerminalSize(master, cols, rows);
    const hold = openDevice(name);
    return { name, master, hold };
  } catch (error) {
    opened.forEach((fd) => closeSync(fd));
    throw explainTerminal(error);
  }
}

function openDevice(name: string): number {
  try {
    return openSync(name, constants.O_RDWR | constants.O_NOCTTY);
  } catch (error) {
    throw new PosixError(errnoOf(error) ?? 'EIO', 'open');
  }
}

class PtyChild implements Child {
  readonly pid: number;
  private readonly posix: Posix;
  private readonly master: Descriptor;
  private hold: number | undefined;
  /** Undefined when the terminal has ended or was released: its descriptors are closed then. */
  private listener: ChildListener | undefined;

  constructor(pid: number, terminal: Terminal, listener: ChildListener, tools: ChildTools) {
    this.pid = pid;
    this.posix = tools.posix;
    this.listener = listener;
    this.hold = terminal.hold;
    this.master = new Descriptor(terminal.master, tools, {
      received: (bytes) => this.listener?.output('pty', bytes),
      over: () => this.finish(),
    });
  }

  write(bytes: Buffer): Promise<void> {
    return this.master.write(bytes);
  }

  endInput(): void {
    if (!this.listener) return;
    const { endOfFile } = this.posix.terminalMode(this.master.fd);
    // 0 means that the terminal has no such character at the moment.
    this.master.write(Buffer.of(endOfFile || controlD)).catch(() => {});
  }

  resize({ cols, rows }: TerminalSize): void {
    if (this.listener) this.posix.setTerminalSize(this.master.fd, cols, rows);
  }

  readonly terminal: ChildTerminal = {
    foreground: () => (this.listener ? this.posix.foregroundGroup(this.master.fd) : undefined),
    unread: () => (this.hold === undefined ? 0 : this.posix.readableBytes(this.hold)),
    secret: () => {
      if (!this.listener) return false;
      const { echoes, lines } = this.posix.terminalMode(this.master.fd);
      return lines && !echoes;
    },
  };

  echoes(): boolean {
    return !this.listener || this.posix.terminalMode(this.master.fd).echoes;
  }

  pause(): void {
    this.master.pause();
  }

  resume(): void {
    this.master.resume();
  }

  release(): void {
    this.listener = undefined;
    this.master.close();
    this.letDeviceGo();
  }

  /** The reaper's call. What the terminal holds now is delivered first, even while reading is paused. */
  rootEnded(status: ExitStatus): void {
    if (!this.listener) return;
    // "Not now" from the kernel is exact: it flushes before it says so.
    this.master.drain(maxHeldBytes);
    this.listener?.exited(status);
    this.letDeviceGo();
    if (this.master.drain(maxHeldBytes)) this.finish();
  }

  private finish(): void {
    const { listener } = this;
    this.release();
    listener?.ended();
  }

  private letDeviceGo(): void {
    if (this.hold !== undefined) closeSync(this.hold);
    this.hold = undefined;
  }
}
