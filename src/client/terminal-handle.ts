// A handle on a terminal: a process that is typed into, run commands in and looked at.

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
  /** How long to wait; the command goes on afterwards. */
  readonly timeoutMs?: number;
  /** auto: by the marks of the shell. sentinel: by a line typed behind the command. none: only typed. */
  readonly completion?: 'auto' | 'sentinel' | 'none';
  readonly signal?: AbortSignal;
}

/** One terminal: a process with a screen. */
export class TerminalHandle extends ProcessHandle {
  /** Types a command and waits for its end. It is typed once, whatever happens to the connection meanwhile. */
  run(command: string, { signal, ...options }: RunOptions = {}): Promise<TerminalRun> {
    return this.api.terminals.run({ id: this.id, command, run: randomId(), ...options }, signal);
  }

  /** Types a text as it is; answers with the number of its event. */
  async type(text: string): Promise<number> {
    return (await this.api.terminals.input(this.id, { text, writeId: randomId() })).seq;
  }

  /** In brackets when the program asked for them. */
  async paste(text: string): Promise<number> {
    return (await this.api.terminals.input(this.id, { paste: text, writeId: randomId() })).seq;
  }

  /** By name: "Enter", "C-c", "Up", "F5", "alt+x". */
  async keys(...keys: string[]): Promise<number> {
    return (await this.api.terminals.input(this.id, { keys, writeId: randomId() })).seq;
  }

  /** Notes a label in the journal, to find a moment by. */
  async mark(label: string): Promise<number> {
    return (await this.api.terminals.mark({ id: this.id, label })).seq;
  }

  /** Until the screen is as wanted; on a time-out the answer carries it as it was. */
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

  /** asciicast unless told; also asciicast-v3, events, gif, apng, webm, mp4. */
  recording(query: { readonly format?: string; readonly speed?: number } = {}): Promise<Buffer> {
    return this.api.terminals.recording(this.id, query);
  }

  /** Ends the terminal with everything in it, and forgets it. */
  async close(): Promise<void> {
    await this.api.terminals.close(this.id);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
