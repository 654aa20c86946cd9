// A child on a terminal: session leader, foreground group, and a controlling terminal of its own.

import { closeSync, constants, openSync } from 'node:fs';
import type { Socket } from 'node:net';

import { errnoOf } from '../base/disk.ts';
import type { LaunchPlan, TerminalSize } from '../protocol/process.ts';
import type { Child, ChildListener, ChildTerminal, ExitStatus } from './child.ts';
import { ChildInput, type ChildTools, openOutput, stdinClosed } from './child-socket.ts';
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
   * terminal looks like the end, and libuv before 1.52 takes a short read together with a hang-up for the end.
   */
  readonly hold: number;
  /** A socket pair in waiting: see `PtyChild.attach`. */
  readonly sockets: readonly [number, number];
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
    return await posix.spawn({ ...plan, stdio: { terminal: terminal.name } });
  } catch (error) {
    for (const fd of [terminal.master, terminal.hold, ...terminal.sockets]) closeSync(fd);
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
    opened.push(hold);
    return { name, master, hold, sockets: posix.socketPair() };
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
  private readonly tools: ChildTools;
  private readonly master: number;
  private hold: number | undefined;
  private socket: Socket;
  private input: ChildInput;
  private paused = false;
  /** Undefined when the terminal has ended or was released: its descriptors are closed then. */
  private listener: ChildListener | undefined;

  constructor(pid: number, terminal: Terminal, listener: ChildListener, tools: ChildTools) {
    this.pid = pid;
    this.tools = tools;
    this.listener = listener;
    this.master = terminal.master;
    this.hold = terminal.hold;
    this.socket = this.attach(terminal.sockets);
    this.input = new ChildInput(this.socket);
  }

  async write(bytes: Buffer): Promise<void> {
    if (!this.listener) throw stdinClosed();
    await this.input.write(bytes);
  }

  endInput(): void {
    if (!this.listener) return;
    const { endOfFile } = this.tools.posix.terminalMode(this.master);
    // 0 means that the terminal has no such character at the moment.
    this.input.write(Buffer.of(endOfFile || controlD)).catch(() => {});
  }

  resize({ cols, rows }: TerminalSize): void {
    if (this.listener) this.tools.posix.setTerminalSize(this.master, cols, rows);
  }

  readonly terminal: ChildTerminal = {
    foreground: () => (this.listener ? this.tools.posix.foregroundGroup(this.master) : undefined),
    unread: () => (this.hold === undefined ? 0 : this.tools.posix.readableBytes(this.hold)),
    secret: () => {
      if (!this.listener) return false;
      const { echoes, lines } = this.tools.posix.terminalMode(this.master);
      return lines && !echoes;
    },
  };

  echoes(): boolean {
    return !this.listener || this.tools.posix.terminalMode(this.master).echoes;
  }

  pause(): void {
    this.paused = true;
    this.socket.pause();
  }

  resume(): void {
    this.paused = false;
    this.socket.resume();
  }

  release(): void {
    if (!this.listener) return;
    this.listener = undefined;
    this.input.release();
    closeSync(this.master);
    this.letDeviceGo();
  }

  /** The reaper's call. What the terminal holds now is delivered first, even while reading is paused. */
  rootEnded(status: ExitStatus): void {
    if (!this.listener) return;
    this.drain();
    this.listener?.exited(status);
    if (!this.listener) return;
    this.letDeviceGo();
    if (this.tools.posix.atEnd(this.master)) this.finish();
  }

  /**
   * A Node socket on the master. Node makes sockets of sockets and pipes only, and libuv blocks in writes to a handle
   * that it knows as a terminal; so the socket is made on one end of a socket pair, and that number is then made to
   * mean the master, before the event loop has looked at it.
   */
  private attach([fd, other]: readonly [number, number]): Socket {
    const socket = openOutput({
      fd,
      readBuffer: this.tools.readBuffer,
      writable: true,
      received: (bytes) => this.listener?.output('pty', bytes),
      over: () => this.socketOver(),
    });
    this.tools.posix.duplicateOnto(this.master, fd);
    closeSync(other);
    if (this.paused) socket.pause();
    return socket;
  }

  /** libuv says the end too early; EIO from the master is the proof. */
  private socketOver(): void {
    if (!this.listener) return;
    if ((!this.paused && this.drain()) || !this.attachAgain()) this.finish();
  }

  /** Somebody has the device open again. False when there is no descriptor to spare: then this was the end. */
  private attachAgain(): boolean {
    if (!this.listener) return true;
    try {
      this.socket = this.attach(this.tools.posix.socketPair());
    } catch (error) {
      if (error instanceof PosixError) return false;
      throw error;
    }
    this.input = new ChildInput(this.socket);
    return true;
  }

  /** Delivers what the terminal holds; true at its end. "Not now" from the kernel is exact: it flushes before it says so. */
  private drain(): boolean {
    const { posix, readBuffer } = this.tools;
    for (let taken = 0; taken < maxHeldBytes && this.listener;) {
      const count = posix.readNow(this.master, readBuffer);
      if (count === undefined) return false;
      if (count === 0) return true;
      taken += count;
      this.listener.output('pty', readBuffer.subarray(0, count));
    }
    return false;
  }

  private finish(): void {
    const listener = this.listener;
    this.release();
    listener?.ended();
  }

  private letDeviceGo(): void {
    if (this.hold !== undefined) closeSync(this.hold);
    this.hold = undefined;
  }
}
