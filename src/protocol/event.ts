// The events of one process, in the shape every floor speaks of them. Numbered from 1; a number once given keeps its
// meaning for ever.

import type { Outcome, TerminalSize } from './process.ts';

export const streams = ['stdout', 'stderr', 'merged', 'pty'] as const;
export type Stream = (typeof streams)[number];

/** Kind numbers are written to disk: never renumber, only add. */
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

/** `note` is what a floor above wants remembered in order: a terminal's run started or finished, a mark. */
export interface StartedBody {
  readonly pid: number;
  readonly [field: string]: unknown;
}
export interface InputBody {
  readonly bytes: number;
  /** What was typed, base64; absent when the terminal did not echo or input is not recorded. */
  readonly data?: string;
  readonly writeId?: string;
  readonly eof?: true;
  /** How it was meant, when that was said. */
  readonly as?: 'text' | 'paste' | 'keys';
  readonly keys?: readonly string[];
  /** The same write goes on in the next event. */
  readonly more?: true;
}
interface SignalBody {
  readonly signal: string;
  readonly by: string;
  /** Process ids beyond the group that were signalled too. */
  readonly escapees?: readonly number[];
}
export interface ExitedBody {
  readonly outcome: Outcome;
}
export interface ClosedBody {
  readonly bytes: number;
  readonly [field: string]: unknown;
}
/** Events that could not be kept: numbers `fromSeq` up to the gap's own number, and `bytes` of output among them. */
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
  /** A label only: the wall clock may jump. */
  readonly wallMs: number;
}

export type ProcessEvent = EventStamp & EventBody;
