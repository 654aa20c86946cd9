// A child on a pseudoterminal: session leader and foreground group of its own controlling terminal.

import { closeSync, constants, openSync } from 'node:fs';

import { errnoOf } from '../../base/disk.ts';
import type { LaunchPlan, TerminalSize } from '../../protocol/process.ts';
import type { Child, ChildListener, ChildTerminal, ExitStatus, RootUse } from './child.ts';
import { type ChildTools, Descriptor } from './descriptor.ts';
import type { Posix } from '../../system/posix.ts';
import { PosixError, tryQuery } from '../../system/posix-library.ts';
import { refuseReserved } from '../../system/descriptor-reserve.ts';
import { checkPlan, explainStart, explainTerminal } from '../start/spawn-error.ts';

// The kernel holds 8 KiB in a terminal's flip buffer and 4 KiB in its line discipline (drivers/tty/pty.c, n_tty.c).
// Whatever we read beyond this was printed after the reading began.
const maxHeldBytes = 65_536;
const controlD = 0x04;
/** Assumed if the kernel refuses the query: no echo, so that we do not record a password. */
const UNKNOWN_MODE = { echoes: false, lines: true, endOfFile: controlD };

/** Our descriptors of one terminal. */
interface Terminal {
  readonly name: string;
  readonly master: number;
  /** The device, kept open until the root has exited: a program may close its terminal and open it again. */
  readonly hold: number;
}

export async function startPtyChild(plan: LaunchPlan, tools: ChildTools): Promise<Child> {
  checkPlan(plan);
  const terminal = openTerminal(tools.posix, plan.size);
  const pending = tools.reaper.beginSpawn();
  try {
    const pid = await spawnOnTerminal(plan, terminal, tools.posix);
    const child = new PtyChild(pid, terminal, tools);
    pending.register(pid, (status, used) => child.rootEnded(status, used));
    return child;
  } catch (error) {
    pending.failed();
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
    opened.push(hold);
    refuseReserved(posix, opened);
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
  /** False when the terminal has ended or was released: its descriptors are closed. */
  private open = true;
  private listener: ChildListener | undefined;

  constructor(pid: number, terminal: Terminal, tools: ChildTools) {
    this.pid = pid;
    this.posix = tools.posix;
    this.hold = terminal.hold;
    this.master = new Descriptor(terminal.master, tools, {
      received: (bytes) => this.listener?.output('pty', bytes),
      over: () => this.finish(),
    });
  }

  listen(listener: ChildListener): void {
    this.listener = listener;
  }

  write(bytes: Buffer): Promise<void> {
    return this.master.write(bytes);
  }

  endInput(): void {
    if (!this.open) return;
    const { endOfFile } = this.mode();
    // 0 means that the terminal has no such character now.
    this.master.write(Buffer.of(endOfFile || controlD)).catch(() => {});
  }

  resize({ cols, rows }: TerminalSize): void {
    if (!this.open) return;
    try {
      this.posix.setTerminalSize(this.master.fd, cols, rows);
    } catch (error) {
      throw explainTerminal(error, 'the size of the terminal could not be set');
    }
  }

  readonly terminal: ChildTerminal = {
    foreground: () => {
      if (!this.open) return undefined;
      try {
        return this.posix.foregroundGroup(this.master.fd);
      } catch (error) {
        throw explainTerminal(error, 'it is not known which group has the terminal');
      }
    },
    unread: () => this.unread(),
    unheard: () => this.unheard(),
    secret: () => {
      if (!this.open) return false;
      const { echoes, lines } = this.mode();
      return lines && !echoes;
    },
    edits: () => this.open && !this.mode().lines,
  };

  echoes(): boolean {
    return !this.open || this.mode().echoes;
  }

  /** True if the kernel refuses the query; the caller asks again. */
  private unread(): boolean {
    const { hold } = this;
    if (this.master.isWriting) return true;
    return hold !== undefined && (tryQuery(() => this.holdsInput(hold)) ?? true);
  }

  private unheard(): boolean {
    const { fd } = this.master;
    return this.open && (tryQuery(() => this.posix.readability(fd).readable) ?? true);
  }

  private mode(): typeof UNKNOWN_MODE {
    return tryQuery(() => this.posix.terminalMode(this.master.fd)) ?? UNKNOWN_MODE;
  }

  pause(): void {
    this.master.pause();
  }

  resume(): void {
    this.master.resume();
  }

  release(): void {
    this.open = false;
    this.listener = undefined;
    this.master.close();
    this.closeDevice();
  }

  /** The reaper calls it. First delivers what the terminal holds now, even while reading is paused. */
  rootEnded(status: ExitStatus, used?: RootUse): void {
    if (!this.open) return;
    // EAGAIN is exact: the kernel flushes before it returns that.
    this.master.drain(maxHeldBytes);
    this.listener?.exited(status, used);
    this.closeDevice();
    if (this.master.drain(maxHeldBytes)) this.finish();
  }

  private finish(): void {
    const { listener } = this;
    this.release();
    listener?.ended();
  }

  /** With VMIN above 1 the device is not readable although it holds characters. */
  private holdsInput(device: number): boolean {
    return this.posix.readability(device).readable || this.posix.readableBytes(device) > 0;
  }

  private closeDevice(): void {
    if (this.hold !== undefined) closeSync(this.hold);
    this.hold = undefined;
  }
}
