// A handle on a terminal: a process that is typed into, run commands in and looked at.

import { randomId } from '../base/ids.ts';
import type { ProcessInfo } from '../protocol/process.ts';
import type { Api } from './api.ts';
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

export class TerminalHandle extends ProcessHandle {
  private readonly near: Api;

  constructor(api: Api, process: ProcessInfo) {
    super(api, process);
    this.near = api;
  }

  /** Types a command and waits for its end. It is typed once, whatever happens to the connection meanwhile. */
  run(command: string, { signal, ...options }: RunOptions = {}): Promise<TerminalRun> {
    return this.near.terminals.run({ id: this.id, command, run: randomId(), ...options }, signal);
  }

  async type(text: string): Promise<number> {
    return (await this.near.terminals.input(this.id, { text, writeId: randomId() })).seq;
  }

  /** In brackets when the program asked for them. */
  async paste(text: string): Promise<number> {
    return (await this.near.terminals.input(this.id, { paste: text, writeId: randomId() })).seq;
  }

  /** By name: "Enter", "C-c", "Up", "F5", "alt+x". */
  async keys(...keys: string[]): Promise<number> {
    return (await this.near.terminals.input(this.id, { keys, writeId: randomId() })).seq;
  }

  async mark(label: string): Promise<number> {
    return (await this.near.terminals.mark({ id: this.id, label })).seq;
  }

  /** Until the screen is as wanted; on a time-out the answer carries it as it was. */
  waitForScreen(
    wait: ScreenWaitSpec,
    options: { signal?: AbortSignal } = {},
  ): Promise<ScreenWaited> {
    return this.near.terminals.waitForScreen(this.id, wait, options.signal);
  }

  screen(query: SnapshotQuery = {}): Promise<ScreenText> {
    return this.near.terminals.snapshot(this.id, query);
  }

  screenshot(query: ScreenshotQuery = {}): Promise<Buffer> {
    return this.near.terminals.screenshot(this.id, query);
  }

  /** asciicast unless told; also asciicast-v3, events, gif, apng, webm, mp4. */
  recording(query: { readonly format?: string; readonly speed?: number } = {}): Promise<Buffer> {
    return this.near.terminals.recording(this.id, query);
  }
}
