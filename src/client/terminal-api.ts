// The operations on terminals that the SDK uses.

import type { CancelSignal } from '../base/cancel-signal.ts';
import type { ScreenCondition } from '../protocol/screen-condition.ts';
import type { Results } from '../protocol/host-api.ts';
import type { Params, StartSpec } from '../protocol/operations.ts';
import type { RunResult } from '../protocol/run.ts';
import type { TextSnapshot } from '../protocol/text-snapshot.ts';

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
  | 'lease'
  | 'keepMs'
  | 'hardTimeoutMs'
  | 'idleTimeoutMs'
  | 'marks'
>;

/** A run, with its output if the shell reported where that is. */
export type TerminalRun = RunResult & {
  readonly output?: string;
  /** The output is only the end. The process has all of it. */
  readonly truncated?: { readonly omittedBytes: number; readonly totalBytes: number };
};

interface TerminalInput {
  readonly text?: string;
  readonly base64?: string;
  readonly paste?: string;
  readonly keys?: readonly string[];
  readonly writeId?: string;
}

export type ScreenText = TextSnapshot;

export interface ScreenWaitSpec extends ScreenCondition {
  readonly afterSeq?: number;
  readonly timeoutMs?: number;
}

export interface ScreenWaited {
  readonly matched: boolean;
  readonly timedOut: boolean;
  readonly matchedText?: string;
  /** The program of the terminal exited first; its last screen was checked. */
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

interface Screenshot {
  readonly bytes: Buffer;
  /** How many different characters are empty boxes, because no font has them. */
  readonly missing: number;
}

export const MISSING_HEADER = 'Holdfast-Missing-Characters';

export interface TerminalApi {
  open(spec: TerminalSpec): Promise<Results['start']>;
  run(params: Params<'run'>, signal?: CancelSignal): Promise<TerminalRun>;
  input(id: string, input: TerminalInput): Promise<Results['write']>;
  mark(params: Params<'mark'>): Promise<Results['mark']>;
  waitForScreen(id: string, wait: ScreenWaitSpec, signal?: CancelSignal): Promise<ScreenWaited>;
  snapshot(id: string, query: SnapshotQuery, signal?: CancelSignal): Promise<ScreenText>;
  /** Ends everything in the terminal and deletes it. */
  close(id: string): Promise<Results['remove']>;
  screenshot(id: string, query: ScreenshotQuery, signal?: CancelSignal): Promise<Screenshot>;
  recording(
    id: string,
    query: { readonly format?: string; readonly speed?: number },
  ): Promise<Buffer>;
}
