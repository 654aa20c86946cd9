// What every tool gets: the connection, the caller's cursor, the clock and the settings; and the options of a single
// call.

import type { Clock } from '../base/clock.ts';
import type { Api } from '../client/api.ts';
import type { StartSpec } from '../protocol/operations.ts';
import type { CallerCursor } from './caller-cursor.ts';

export interface ToolSettings {
  /** The largest output in one answer, as text, marks included. */
  readonly maxOutputBytes: number;
  /** How often a wait reports progress. */
  readonly progressEveryMs: number;
  /** The working directory of commands that name none. */
  readonly directory?: string | undefined;
  /** What commands inherit; by default everything that the host has. */
  readonly environment?: StartSpec['environment'];
  /** Variables besides those that keep commands from asking questions. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Ties browsers that an agent starts to its chat. */
  readonly browserSession?: string | undefined;
  /** A terminal ends after this long without output, input or changes. 0: never. */
  readonly terminalIdleMs: number;
  /** The sender of signals. */
  readonly by: string;
}

export interface ToolContext {
  readonly api: Api;
  readonly cursor: CallerCursor;
  readonly clock: Clock;
  readonly settings: ToolSettings;
  /** Called for every process that keeps running without a wait. */
  readonly leftRunning: (id: string) => void;
}

/** The state of a wait, in milliseconds. */
interface WaitProgress {
  readonly elapsedMs: number;
  readonly ofMs: number;
}

/** The options of one call, besides its arguments. */
export interface ToolCall {
  /** A permanent name of this call: a repeated call attaches to what the first one started. */
  readonly callId?: string | undefined;
  /** Aborts when the caller gives up: ends only the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts when a person stops the agent: also ends the process that is being waited for. */
  readonly interrupt?: AbortSignal | undefined;
  /** The longest wait, whatever the model asks for: the client would time out. */
  readonly maxWaitMs?: number | undefined;
  readonly progress?: ((progress: WaitProgress) => void) | undefined;
  /** Variables of what this call starts, before those of the toolbox. What keeps commands from asking goes before both. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}
