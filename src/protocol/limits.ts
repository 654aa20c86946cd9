// Every bound in one place, with the reason for its number. All can be set per host.

const KiB = 1024;
const MiB = 1024 * KiB;
const MINUTE = 60_000;

export const defaultLimits = {
  /** On disk per process: the first quarter is kept, then the newest rest. */
  journalBytes: 64 * MiB,
  /** Of these, kept from the beginning. */
  journalHeadBytes: 16 * MiB,
  /** On disk in all; the oldest closed processes go first. */
  totalBytes: 2048 * MiB,
  /** Output held in memory per process while the disk refuses it. */
  memoryBytes: 1 * MiB,
  /** Closed processes are forgotten after this long, counted from `closed`. */
  closedAgeMs: 24 * 60 * MINUTE,
  /** And beyond this many, oldest first: each costs about 2 KB of memory. */
  closedCount: 2000,
  /** Live processes at once; a start beyond it is refused, not queued. */
  liveCount: 4000,
  /** Leases by name at once: each is a timer and a line of a small file. */
  leaseCount: 1000,
  /** Waits parked at once, over all callers. */
  parkedWaits: 20_000,
  /** TERM to KILL, when the caller names no grace of its own. */
  graceMs: 5000,
  /** Write ids remembered per process, the codex exec-server's number. */
  writeIds: 4096,
  /** Input accepted but not yet taken by the process. */
  inputBytes: 16 * MiB,
  /** A start whose paths lie on a network or FUSE file system waits this long for them to answer. */
  pathAnswerMs: 5000,
  /** Children started per turn of the event loop: 200 in one turn froze it for 470 ms. */
  startsPerTurn: 8,
} as const;

export type Limits = { readonly [name in keyof typeof defaultLimits]: number };

/** Largest payload of one output event. */
export const MAX_OUTPUT_EVENT_BYTES = 64 * KiB;
/** Largest answer to one read of a page or a range. */
export const MAX_PAGE_BYTES = 4 * MiB;
export const DEFAULT_PAGE_BYTES = 256 * KiB;
/** Rows of one page of a list, when the caller names no number: slim ones are about 1 KiB each. */
export const DEFAULT_LIST_ROWS = 1000;
/** Characters of all rows of one page; the page then has fewer rows. In JSON a character can take 6 bytes. */
export const MAX_LIST_CHARS = 4 * MiB;
/** Characters of a command, and of all arguments together, in a row of a list. */
export const MAX_ROW_CHARS = 1024;
/** Largest payload of a record. What carries more is refused, or recorded in several events. */
export const MAX_RECORD_BYTES = 8 * MiB;
/** Of the facts of a process, as JSON: its last record carries them with all its segments. */
export const MAX_FACTS_BYTES = MAX_RECORD_BYTES - 512 * KiB;
/** Input that one event records; a larger write has several. In base64 that is a third more. */
export const MAX_INPUT_EVENT_BYTES = 1 * MiB;
/** Characters of a command that is typed into a terminal, and of the names of the keys of one write: in JSON one can take 6 bytes. */
export const MAX_TYPED_CHARS = 1 * MiB;

/** Connections that may wait to be taken in while a program is busy. Beyond it some wait for seconds, and callers on a unix socket are refused. */
export const BACKLOG = 4096;

/** How far output may get ahead of a reader that holds it back: well below what a journal keeps of its end. */
export const PACE_BYTES = 16 * MiB;
/** For a reader that leaves: as good as no bound. */
export const UNPACED_BYTES = 2 ** 47;
/** A reader without room says so often enough not to be taken for gone. */
export const STILL_HERE_MS = 4000;
