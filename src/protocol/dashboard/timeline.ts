// The course of a process: when it printed how much, and what else happened.

import type { RunCompletion } from '../run.ts';

/** An event with its place in the output and its time. */
export interface TimePoint {
  readonly seq: number;
  /** Output bytes before it. */
  readonly offset: number;
  readonly atMs: number;
}

/** An event that is no output: a run, a mark, input, a new size, a signal, who has the keyboard. */
export interface TimeMark extends TimePoint {
  readonly kind: string;
  /** In a few words. */
  readonly label: string;
}

export interface Timeline {
  /** Of the newest event. */
  readonly seq: number;
  /** Equally many events apart. */
  readonly points: readonly TimePoint[];
  /** The newest; `more` says that there are older ones. */
  readonly marks: readonly TimeMark[];
  readonly more: boolean;
}

/** A command that was typed at the shell of a terminal. */
export interface TerminalRunInfo {
  readonly run: string;
  /** Absent if the terminal did not echo. */
  readonly command?: string;
  readonly completion: RunCompletion;
  readonly seq: number;
  readonly startedAtMs: number;
  /** From its end on. */
  readonly endSeq?: number;
  readonly exitCode?: number;
  readonly durationMs?: number;
  readonly outputFrom?: number;
  readonly outputTo?: number;
}
