// A child: one started program, on pipes or on a terminal. Platforms differ only behind this interface.

import type { Stream } from '../../protocol/event.ts';
import type { TerminalSize } from '../../protocol/process.ts';
import type { Used } from '../../system/resources.ts';

export interface ExitStatus {
  /** Set if the program exited. */
  readonly code?: number;
  /** Set if a signal ended it: "SIGTERM". */
  readonly signal?: string;
  /** The kernel's out-of-memory killer has ended a program at that time; perhaps this one. */
  readonly maybeOom?: true;
}

/** What the root used, with all descendants that were waited for. */
export interface RootUse extends Used {
  /** We also reap its orphans. */
  readonly countsOrphans: boolean;
}

/** Receives what happens to a child. Calls come from the event loop, never from inside a call into the child. */
export interface ChildListener {
  /** The bytes are valid only during the call. */
  output(stream: Stream, bytes: Buffer): void;
  /** The root process has exited; all output that was in its streams at that moment has been delivered before. */
  exited(status: ExitStatus, used?: RootUse): void;
  /** Every output stream reached its end. Before or after `exited`, once. */
  ended(): void;
}

/** The terminal of a child. */
export interface ChildTerminal {
  /** The foreground process group. */
  foreground(): number | undefined;
  /** No program has read all typed input yet. */
  unread(): boolean;
  /** We have not read all output yet. */
  unheard(): boolean;
  /** Canonical mode without echo: a program asks for a password. */
  secret(): boolean;
  /** Not in canonical mode: a line editor or a full-screen program reads single characters. */
  edits(): boolean;
}

export interface Child {
  readonly pid: number;
  readonly terminal?: ChildTerminal;
  /** Begins delivery. Call it in the turn of the event loop in which the start resolved: nothing happens before it ends. */
  listen(listener: ChildListener): void;
  /** Resolves when the kernel has taken all of it; rejects with `stdin_closed` if it never will. */
  write(bytes: Buffer): Promise<void>;
  /** Closes the pipe; on a terminal types the end-of-file character. */
  endInput(): void;
  resize(size: TerminalSize): void;
  /** False only on a terminal that does not echo now. */
  echoes(): boolean;
  /** Stops reading output until `resume`; the child blocks once its pipe is full. */
  pause(): void;
  resume(): void;
  /** Closes every descriptor. The listener is not called afterwards. */
  release(): void;
}
