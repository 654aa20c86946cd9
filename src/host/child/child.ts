// A child: one started program, on pipes or on a terminal, as the host sees it. Where a platform differs it differs
// behind this interface.

import type { Stream } from '../../protocol/event.ts';
import type { TerminalSize } from '../../protocol/process.ts';

export interface ExitStatus {
  /** Set when the program ended by itself. */
  readonly code?: number;
  /** Set when a signal ended it: "SIGTERM". */
  readonly signal?: string;
  /** The kernel's out-of-memory killer struck at that time. */
  readonly oom?: true;
}

/** What a child tells its owner. Calls come from the event loop, never from inside a call into the child. */
export interface ChildListener {
  /** The bytes are only lent: they are overwritten after the call returns. */
  output(stream: Stream, bytes: Buffer): void;
  /** The root process has ended; all output that was there at that moment has been delivered before. */
  exited(status: ExitStatus): void;
  /** Every output stream reached its end. Before or after `exited`, once. */
  ended(): void;
}

/** What only a terminal knows. */
export interface ChildTerminal {
  /** The process group that has the terminal now. */
  foreground(): number | undefined;
  /** Something typed has not been read by a program yet. */
  unread(): boolean;
  /** Something printed has not been read by us yet. */
  unheard(): boolean;
  /** Whole lines are read without being echoed: a password is asked for. A line editor reads characters. */
  secret(): boolean;
  /** Characters are read, not lines: a line editor waits for input, or a program that has the screen to itself. */
  edits(): boolean;
}

export interface Child {
  readonly pid: number;
  readonly terminal?: ChildTerminal;
  /** Resolves when the kernel has taken all of it; rejects with `stdin_closed` when it never will. */
  write(bytes: Buffer): Promise<void>;
  /** End of input: closes the pipe; on a terminal types the end-of-file character. */
  endInput(): void;
  resize(size: TerminalSize): void;
  /** False only on a terminal that currently does not echo, as while a password is typed. */
  echoes(): boolean;
  /** Stop reading output until `resume`: the child then blocks once its pipe is full. */
  pause(): void;
  resume(): void;
  /** Gives up every descriptor. Nothing is told to the listener afterwards. */
  release(): void;
}
