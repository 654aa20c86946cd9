// A run: one command typed into a terminal, and how it ended. Its beginning and its end are notes in the terminal's
// journal.

/**
 * How the end was detected. marks: by escape sequences of the shell. sentinel: by the output of a line typed after the
 * command. unknown: not detected.
 */
export type RunCompletion = 'marks' | 'sentinel' | 'unknown';

export interface RunResult {
  readonly run: string;
  /** Event of its start; 0 if nothing was typed. */
  readonly seq: number;
  /** False: it was never typed, and never will be. */
  readonly typed: boolean;
  readonly completed: boolean;
  readonly timedOut: boolean;
  readonly completion: RunCompletion;
  /** Event of its end. */
  readonly endSeq?: number;
  readonly exitCode?: number;
  /** Working directory of the shell afterwards. */
  readonly cwd?: string;
  readonly durationMs: number;
  /** Its own output, as a range of the terminal's output bytes. */
  readonly outputFrom?: number;
  readonly outputTo?: number;
  /** The output may contain a prompt or the echo of what was typed. */
  readonly outputMixed?: true;
  /** The terminal's program ended first. */
  readonly ended?: true;
  /** The shell waits for the rest of the command, for example a closing quote. */
  readonly incomplete?: true;
  /** The shell refused it: a syntax error, or a failed "!" expansion. */
  readonly executed?: false;
  /** The shell of this name reads the terminal now: the command started it, or ended the shell above it. */
  readonly entered?: string;
  /** Text at the prompt was deleted first. */
  readonly cleared?: true;
  /** The command that kept the terminal busy, if it was not typed. */
  readonly busyWith?: string;
}

export interface RunStartedNote {
  readonly note: 'run';
  readonly run: string;
  /** Absent if the terminal did not echo. */
  readonly command?: string;
  readonly completion: RunCompletion;
  readonly noWait?: true;
}

export interface RunFinishedNote {
  readonly note: 'runEnd';
  readonly run: string;
  /** Event of its start. */
  readonly startSeq: number;
  readonly completion: Exclude<RunCompletion, 'unknown'>;
  readonly durationMs: number;
  readonly outputFrom: number;
  readonly outputTo: number;
  readonly outputMixed?: true;
  readonly exitCode?: number;
  readonly cwd?: string;
  readonly executed?: false;
  readonly entered?: string;
}

export interface MarkNote {
  readonly note: 'mark';
  readonly label: string;
}

/** A client took the keyboard, took it from another client, or gave it back. */
export interface KeyboardNote {
  readonly note: 'keyboard';
  readonly action: 'taken' | 'forced' | 'given';
  readonly holder: string;
}

export type TerminalNote = RunStartedNote | RunFinishedNote | MarkNote | KeyboardNote;
