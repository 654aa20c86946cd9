// What every tool works with: the connection, the caller's cursor, the clock, and what was configured; and what comes
// with a single call.

import type { Clock } from '../base/clock.ts';
import type { Api } from '../client/api.ts';
import type { StartSpec } from '../protocol/operations.ts';
import type { CallerCursor } from './caller-cursor.ts';

export interface ToolSettings {
  /** Largest output in one answer, as text, marks included. */
  readonly maxOutputBytes: number;
  /** How often a wait tells that it goes on. */
  readonly progressEveryMs: number;
  /** Where commands run that name no directory. */
  readonly directory?: string | undefined;
  /** What commands inherit; by default all that the host has. */
  readonly environment?: StartSpec['environment'];
  /** Variables beside the ones that keep commands from asking questions. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Ties browsers that an agent starts to its chat. */
  readonly browserSession?: string | undefined;
  /** A terminal ends when nothing was printed, typed or changed in it for so long. 0 is never. */
  readonly terminalIdleMs: number;
  /** Who is named as the sender of signals. */
  readonly by: string;
}

export interface ToolContext {
  readonly api: Api;
  readonly cursor: CallerCursor;
  readonly clock: Clock;
  readonly settings: ToolSettings;
  /** Told of every process that goes on without anybody waiting for it. */
  readonly leftRunning: (id: string) => void;
}

/** How a wait stands; times in milliseconds. */
interface WaitProgress {
  readonly elapsedMs: number;
  readonly ofMs: number;
}

/** What comes with one call, besides its arguments. */
export interface ToolCall {
  /** Names this call for ever: the same one again attaches to what it started. */
  readonly callId?: string | undefined;
  /** Aborted when the caller gives up: ends the wait and nothing else. */
  readonly signal?: AbortSignal | undefined;
  /** Aborted when a person stops the agent: ends the process that is being waited for, too. */
  readonly interrupt?: AbortSignal | undefined;
  /** No wait is longer, whatever the model asks for: the caller's transport would give up. */
  readonly maxWaitMs?: number | undefined;
  readonly progress?: ((progress: WaitProgress) => void) | undefined;
}
