// A handle on a terminal: a process with a screen, which takes keys and runs commands.

import { randomId } from '../base/ids.ts';
import { ProcessHandle } from './process-handle.ts';
import type {
  ScreenshotQuery,
  ScreenText,
  ScreenWaited,
  ScreenWaitSpec,
  SnapshotQuery,
  TerminalRun,
} from './terminal-api.ts';

export interface RunOptions {
  /** How long to wait; the command continues afterwards. */
  readonly timeoutMs?: number;
  /** auto: the shell reports the end. sentinel: a line typed after the command does. none: only type. */
  readonly completion?: 'auto' | 'sentinel' | 'none';
  readonly signal?: AbortSignal;
}

/** One terminal: a process with a screen. */
export class TerminalHandle extends ProcessHandle {
  /** Types a command and waits for it to exit. It is typed once, whatever happens to the connection. */
  run(command: string, { signal, ...options }: RunOptions = {}): Promise<TerminalRun> {
    return this.api.terminals.run({ id: this.id, command, run: randomId(), ...options }, signal);
  }

  /** Types a text as it is; returns the sequence number of its event. */
  async type(text: string): Promise<number> {
    return (await this.api.terminals.input(this.id, { text, writeId: randomId() })).seq;
  }

  /** Bracketed if the program asked for it. */
  async paste(text: string): Promise<number> {
    return (await this.api.terminals.input(this.id, { paste: text, writeId: randomId() })).seq;
  }

  /** By name: "Enter", "C-c", "Up", "F5", "alt+x". */
  async keys(...keys: string[]): Promise<number> {
    return (await this.api.terminals.input(this.id, { keys, writeId: randomId() })).seq;
  }

  /** Adds a label to the journal. */
  async mark(label: string): Promise<number> {
    return (await this.api.terminals.mark({ id: this.id, label })).seq;
  }

  /** Waits until the screen matches; on timeout the result has the last screen. */
  waitForScreen(
    wait: ScreenWaitSpec,
    options: { signal?: AbortSignal } = {},
  ): Promise<ScreenWaited> {
    return this.api.terminals.waitForScreen(this.id, wait, options.signal);
  }

  /** The screen as text. */
  screen(query: SnapshotQuery = {}): Promise<ScreenText> {
    return this.api.terminals.snapshot(this.id, query);
  }

  /** The screen as a picture. */
  async screenshot(query: ScreenshotQuery = {}): Promise<Buffer> {
    return (await this.api.terminals.screenshot(this.id, query)).bytes;
  }

  /** asciicast by default; also asciicast-v3, events, gif, apng, webm, mp4. */
  recording(query: { readonly format?: string; readonly speed?: number } = {}): Promise<Buffer> {
    return this.api.terminals.recording(this.id, query);
  }

  /** Ends everything in the terminal and deletes it. */
  async close(): Promise<void> {
    await this.api.terminals.close(this.id);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
