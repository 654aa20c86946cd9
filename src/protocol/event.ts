// The events of one process, numbered from 1.

import type { Outcome, TerminalSize } from './process.ts';

export const streams = ['stdout', 'stderr', 'merged', 'pty'] as const;
export type Stream = (typeof streams)[number];

/**
 * Kind numbers are written to disk: never renumber, only add. `note` records something of an upper floor in order: the
 * start or end of a terminal's run, or a mark.
 */
export const eventKinds = {
  started: 1,
  output: 2,
  input: 3,
  resize: 4,
  signal: 5,
  note: 6,
  exited: 7,
  closed: 8,
  gap: 9,
} as const;
export type EventKind = keyof typeof eventKinds;

export interface StartedBody {
  readonly pid: number;
  readonly [field: string]: unknown;
}
export interface InputBody {
  readonly bytes: number;
  /** Base64; absent if the terminal did not echo or input is not recorded. */
  readonly data?: string;
  readonly writeId?: string;
  readonly eof?: true;
  readonly as?: 'text' | 'paste' | 'keys';
  readonly keys?: readonly string[];
  /** The same write continues in the next event. */
  readonly more?: true;
}
interface SignalBody {
  readonly signal: string;
  readonly by: string;
  /** Pids outside the group that were signalled too. */
  readonly escapees?: readonly number[];
}
export interface ExitedBody {
  readonly outcome: Outcome;
}
export interface ClosedBody {
  readonly bytes: number;
  readonly [field: string]: unknown;
}
/** Stands for events that could not be stored: `fromSeq` up to its own number, with `bytes` of output. */
export interface GapBody {
  readonly fromSeq: number;
  readonly bytes: number;
  readonly reason: string;
}

export type EventBody =
  | { readonly kind: 'started'; readonly body: StartedBody }
  | { readonly kind: 'output'; readonly stream: Stream; readonly data: Buffer }
  | { readonly kind: 'input'; readonly body: InputBody }
  | { readonly kind: 'resize'; readonly body: TerminalSize }
  | { readonly kind: 'signal'; readonly body: SignalBody }
  | { readonly kind: 'note'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'exited'; readonly body: ExitedBody }
  | { readonly kind: 'closed'; readonly body: ClosedBody }
  | { readonly kind: 'gap'; readonly body: GapBody };

export interface EventStamp {
  readonly seq: number;
  /** Output bytes of the process before this event. */
  readonly offset: number;
  /** Monotonic, microseconds since the process was started. */
  readonly atUs: number;
  /** For display only: the wall clock may jump. */
  readonly wallMs: number;
}

export type ProcessEvent = EventStamp & EventBody;
