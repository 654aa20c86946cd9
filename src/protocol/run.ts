// A run: one command typed into a terminal, and what is known about its end. Its beginning and its end are notes in the
// terminal's journal.

/**
 * How the end was known. marks: the shell said so. sentinel: a line typed behind the command printed something.
 * unknown: nobody said anything, and nothing is guessed.
 */
export type RunCompletion = 'marks' | 'sentinel' | 'unknown';

export interface RunResult {
  /** Its name. */
  readonly run: string;
  /** The note of its start; 0 when nothing was typed. */
  readonly seq: number;
  /** False: it was never typed, and never will be. */
  readonly typed: boolean;
  readonly completed: boolean;
  readonly timedOut: boolean;
  readonly completion: RunCompletion;
  /** The note of its end. */
  readonly endSeq?: number;
  readonly exitCode?: number;
  /** Where the shell was afterwards. */
  readonly cwd?: string;
  readonly durationMs: number;
  /** Its own output, as a range of the terminal's output bytes. */
  readonly outputFrom?: number;
  readonly outputTo?: number;
  /** What the shell itself shows may be in it: a prompt, or the echo of what was typed. */
  readonly outputMixed?: true;
  /** The terminal's program ended first. */
  readonly ended?: true;
  /** The shell waits for the rest of the command: something in it is not closed. */
  readonly incomplete?: true;
  /** The shell refused it: a syntax error, or a "!" that it could not replace. */
  readonly executed?: false;
  /** It started a shell of this name, which reads the terminal now; or it ended the one that it was typed into. */
  readonly entered?: string;
  /** What somebody had typed at the prompt was taken back first. */
  readonly cleared?: true;
  /** What the terminal was busy with when it was not typed. */
  readonly busyWith?: string;
}

export interface RunStartedNote {
  readonly note: 'run';
  readonly run: string;
  /** Absent when it was typed where nothing is echoed. */
  readonly command?: string;
  readonly completion: RunCompletion;
  readonly noWait?: true;
}

export interface RunFinishedNote {
  readonly note: 'runEnd';
  readonly run: string;
  /** The number of the note of its start. */
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

export type TerminalNote = RunStartedNote | RunFinishedNote | MarkNote;
