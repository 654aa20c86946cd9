// The description of a process, its states and its outcomes.

import type { Cause, Confinement, Fence } from './confinement/confinement.ts';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

export interface TerminalFacts {
  readonly term: string;
  /** The kind of shell that marks its commands; absent if none does. */
  readonly marks?: string;
  readonly idleTimeoutMs?: number;
  /** The keeper answers what its programs ask, as far as that needs no screen. */
  readonly queries?: 'keeper';
}

/** How a process ended. None of these is ever reported as exit code 0. */
export type Outcome =
  | { readonly kind: 'exit'; readonly code: number }
  | {
      readonly kind: 'signal';
      readonly signal: string;
      readonly by: string;
      /** A guess: the kernel ended some program for lack of memory at that time. */
      readonly maybeOom?: true;
    }
  | {
      readonly kind: 'timeout';
      readonly afterMs: number;
      readonly signal?: string;
      readonly code?: number;
    }
  /** The kernel ended the root because of the memory limit of its group. */
  | { readonly kind: 'oom'; readonly signal: string }
  | { readonly kind: 'lost'; readonly reason: string };

/**
 * What a process has cost: its root and its descendants, as far as their parents or the host waited for them. A parent that
 * ignores SIGCHLD waits for none of its children.
 */
export interface Usage {
  readonly userMs: number;
  readonly systemMs: number;
  /** by "cgroup": of all its processes together. by "wait": the largest resident size of one of them. */
  readonly peakMemoryBytes?: number;
  /** In place of it where the kernel cannot tell a smaller peak from that of the host. */
  readonly peakMemoryAtMostBytes?: number;
  /** From and to storage, not from and to the page cache. */
  readonly readBytes: number;
  readonly writtenBytes: number;
  /** The most at the same time. */
  readonly peakProcesses?: number;
  /** How long its limit of processors held it back. */
  readonly throttledMs?: number;
  readonly by: 'cgroup' | 'wait';
  /** False: a descendant is alive, or one was not counted. */
  readonly complete: boolean;
}

/**
 * running: the root process is alive. exited: it has ended and its outcome is known, but a stream is still held open.
 * closed: nothing can be added. lost: the keeper died first, so the outcome is unknown.
 */
export type ProcessState = 'running' | 'exited' | 'closed' | 'lost';

export interface ByteCounts {
  /** Printed by the process and read by us. */
  readonly total: number;
  /** Still readable. */
  readonly retained: number;
  /** Dropped from the middle by the size limit. */
  readonly dropped: number;
  /** Never stored (full disk) or damaged on disk. */
  readonly lost: number;
}

/** What was decided at the start of a process and never changes. */
export interface StartFacts {
  readonly id: string;
  /** In a fleet: the name of the host that has it. */
  readonly host?: string;
  /** In a fleet: read from its archive, because its host is gone. */
  readonly archived?: true;
  readonly owner: string;
  readonly name?: string;
  readonly key?: string;
  /** For people: the shell command, or the arguments joined. */
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly pid: number;
  readonly streams: 'merged' | 'separate' | 'pty';
  readonly stdin: 'none' | 'pipe';
  readonly size?: TerminalSize;
  /** Terminals only. */
  readonly terminal?: TerminalFacts;
  readonly labels?: Readonly<Record<string, string>>;
  /** The process ends with this lease. */
  readonly lease?: string;
  readonly startedAtMs: number;
}

export interface ProcessInfo extends StartFacts {
  /** In lists: `command` or `argv` was too long and ends with "…"; `get` returns all of it. */
  readonly cut?: true;
  readonly state: ProcessState;
  /** No member of its process group and no known descendant is alive. */
  readonly settled: boolean;
  readonly outcome?: Outcome;
  /** From the exit on, where it is known. */
  readonly usage?: Usage;
  /** What limits ended or refused, beside the outcome of the root. */
  readonly causes?: readonly Cause[];
  /** What held it, if anything was asked for. */
  readonly confinement?: Confinement;
  readonly exitedAtMs?: number;
  readonly closedAtMs?: number;
  readonly durationMs: number;
  readonly lastOutputAtMs?: number;
  /** Number of the newest event. */
  readonly seq: number;
  readonly bytes: ByteCounts;
  /** The reason why output cannot be stored now. */
  readonly degraded?: string;
}

/** Everything that starting a child needs. */
export interface LaunchPlan {
  /** Absolute path of the program. */
  readonly file: string;
  readonly argv: readonly string[];
  /** "NAME=value" each. */
  readonly env: readonly string[];
  /** Variables of other names that many starts share; always the same array. */
  readonly commonEnv?: readonly string[];
  readonly cwd: string;
  readonly fence?: Fence;
  /** Its directory or program is on a mount that may hang: the host's main thread must not touch it. */
  readonly remote?: true;
  readonly streams: 'merged' | 'separate' | 'pty';
  readonly stdin: 'none' | 'pipe';
  readonly size: TerminalSize;
  readonly terminal?: TerminalFacts;
  /** The shell of a terminal authenticates its marks with it. */
  readonly nonce?: string;
  /** The requested argv, if the shell was started with additional arguments. */
  readonly shownArgv?: readonly string[];
}
