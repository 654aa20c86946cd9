// What the SDK asks about terminals. Screens are shown by a server; a host that is near only types and runs.

import type { ScreenCondition } from '../protocol/screen-condition.ts';
import type { Results } from '../protocol/host-api.ts';
import type { Params, StartSpec } from '../protocol/operations.ts';
import type { RunResult } from '../protocol/run.ts';

export type TerminalSpec = Pick<
  StartSpec,
  | 'argv'
  | 'cwd'
  | 'environment'
  | 'env'
  | 'size'
  | 'term'
  | 'id'
  | 'key'
  | 'name'
  | 'labels'
  | 'keepMs'
  | 'hardTimeoutMs'
  | 'idleTimeoutMs'
  | 'marks'
>;

/** A run, with its own output when the shell told where that was. */
export type TerminalRun = RunResult & { readonly output?: string };

interface TerminalInput {
  readonly text?: string;
  readonly base64?: string;
  readonly paste?: string;
  readonly keys?: readonly string[];
  readonly writeId?: string;
}

export interface ScreenText {
  readonly capturedAtSeq: number;
  readonly cols: number;
  readonly rows: number;
  readonly cursorRow: number;
  readonly cursorCol: number;
  readonly text: string;
  readonly screenHash: string;
}

export interface ScreenWaitSpec extends ScreenCondition {
  readonly afterSeq?: number;
  readonly timeoutMs?: number;
}

export interface ScreenWaited {
  readonly matched: boolean;
  readonly timedOut: boolean;
  readonly matchedText?: string;
  readonly ended?: true;
  readonly snapshot: ScreenText;
  readonly nearest?: { readonly row: number; readonly line: string; readonly found: string };
}

export interface SnapshotQuery {
  readonly scrollback?: boolean;
  readonly at?: number;
}

export interface ScreenshotQuery {
  readonly format?: 'png' | 'svg' | 'html';
  readonly at?: number;
  readonly theme?: string;
  readonly scale?: number;
  readonly showCursor?: boolean;
}

export interface TerminalApi {
  open(spec: TerminalSpec): Promise<Results['start']>;
  run(params: Params<'run'>, signal?: AbortSignal): Promise<TerminalRun>;
  input(id: string, input: TerminalInput): Promise<Results['write']>;
  mark(params: Params<'mark'>): Promise<Results['mark']>;
  waitForScreen(id: string, wait: ScreenWaitSpec, signal?: AbortSignal): Promise<ScreenWaited>;
  snapshot(id: string, query: SnapshotQuery): Promise<ScreenText>;
  /** Ends it and everything in it, and forgets it. */
  close(id: string): Promise<Results['remove']>;
  screenshot(id: string, query: ScreenshotQuery): Promise<Buffer>;
  recording(
    id: string,
    query: { readonly format?: string; readonly speed?: number },
  ): Promise<Buffer>;
}
