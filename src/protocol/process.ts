// What is known about a process, and the words for its states and endings.

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface TerminalFacts {
  readonly term: string;
  /** The kind of shell that marks its commands; absent when none does. */
  readonly marks?: string;
  readonly idleTimeoutMs?: number;
}

/** How a process ended. None of these ever collapses into exit code 0. */
export type Outcome =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string; readonly by: string }
  | {
      readonly kind: 'timeout';
      readonly afterMs: number;
      readonly signal?: string;
      readonly code?: number;
    }
  | { readonly kind: 'oom'; readonly signal: string }
  | { readonly kind: 'lost'; readonly reason: string };

/**
 * running: the root process is alive. exited: it has ended and its outcome is known, but a stream is still held open.
 * closed: nothing can be added. lost: the keeper died first, so the outcome is unknown.
 */
export type ProcessState = 'running' | 'exited' | 'closed' | 'lost';

export interface ByteCounts {
  /** Printed by the process, as far as it was seen. */
  readonly total: number;
  /** Still readable. */
  readonly retained: number;
  /** Dropped from the middle by the size limit. */
  readonly dropped: number;
  /** Never stored (full disk) or damaged on disk. */
  readonly lost: number;
}

export interface ProcessInfo {
  readonly id: string;
  readonly owner: string;
  readonly name?: string;
  readonly key?: string;
  /** For people: the shell command, or the arguments joined. */
  readonly command: string;
  readonly argv: readonly string[];
  /** In a list, and where several are answered: `command` or `argv` was too long and is cut, ending with "…"; `get` has all of it. */
  readonly cut?: true;
  readonly cwd: string;
  readonly pid: number;
  readonly streams: 'merged' | 'separate' | 'pty';
  readonly stdin: 'none' | 'pipe';
  readonly size?: TerminalSize;
  /** The value of TERM, and whether its shell was made to mark its commands. Terminals only. */
  readonly terminal?: TerminalFacts;
  readonly labels?: Readonly<Record<string, string>>;
  /** The lease that it was started under: it ends with it. */
  readonly lease?: string;
  readonly state: ProcessState;
  /** No member of its group and no known descendant is alive. */
  readonly settled: boolean;
  readonly outcome?: Outcome;
  readonly startedAtMs: number;
  readonly exitedAtMs?: number;
  readonly closedAtMs?: number;
  readonly durationMs: number;
  readonly lastOutputAtMs?: number;
  /** Number of the newest event. */
  readonly seq: number;
  readonly bytes: ByteCounts;
  /** Present while output cannot be stored; says why. */
  readonly degraded?: string;
}

/** Everything decided: what a child is started from. */
export interface LaunchPlan {
  /** Absolute path of the program. */
  readonly file: string;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  /** More of them, of other names: those that many starts have in common, always in the same array. */
  readonly commonEnv?: readonly string[];
  readonly cwd: string;
  /** Its directory or program lies where an answer may not come: nothing of it is looked at by the host's own thread. */
  readonly remote?: true;
  readonly streams: 'merged' | 'separate' | 'pty';
  readonly stdin: 'none' | 'pipe';
  readonly size: TerminalSize;
  readonly terminal?: TerminalFacts;
  /** What the shell of a terminal proves its marks by. */
  readonly nonce?: string;
  /** What was asked for, where the shell was started with more. */
  readonly shownArgv?: readonly string[];
}
