// All limits, with the reason for each number. Those of `defaultLimits` can be set per host.

const KiB = 1024;
const MiB = 1024 * KiB;
const MINUTE = 60_000;

export const defaultLimits = {
  /** On disk per process: the first quarter and the newest rest are kept. */
  journalBytes: 64 * MiB,
  /** The part of `journalBytes` that is kept from the beginning. */
  journalHeadBytes: 16 * MiB,
  /** On disk in total; the oldest closed processes are deleted first. */
  totalBytes: 2048 * MiB,
  /** Output held in memory per process while the disk refuses it. */
  memoryBytes: 1 * MiB,
  /** Closed processes are deleted after this long, counted from `closed`. */
  closedAgeMs: 24 * 60 * MINUTE,
  /** Closed processes beyond this number are deleted, oldest first: each costs about 2 KB of memory. */
  closedCount: 2000,
  /** Live processes; a start beyond it is refused, not queued. */
  liveCount: 4000,
  /** Named leases: each is a timer and a line of a small file. */
  leaseCount: 1000,
  /** Parked waits over all callers. */
  parkedWaits: 20_000,
  /** Default time between SIGTERM and SIGKILL. */
  graceMs: 5000,
  /** Write ids remembered per process, the codex exec-server's number. */
  writeIds: 4096,
  /** Input accepted but not yet read by the process. */
  inputBytes: 16 * MiB,
  /** A start whose paths lie on a network or FUSE file system waits this long for them to answer. */
  pathAnswerMs: 5000,
  /** Children started per turn of the event loop: 200 in one turn froze it for 470 ms. */
  startsPerTurn: 8,
} as const;

export type Limits = { readonly [name in keyof typeof defaultLimits]: number };

/** Without a head of its own, a journal of another size keeps the same part from the beginning. */
export function completeLimits(given: Partial<Limits> = {}): Limits {
  const limits = { ...defaultLimits, ...given };
  const head = Math.floor(
    (limits.journalBytes * defaultLimits.journalHeadBytes) / defaultLimits.journalBytes,
  );
  const wanted = given.journalHeadBytes ?? head;
  return { ...limits, journalHeadBytes: Math.min(wanted, limits.journalBytes) };
}

/** Largest payload of one output event. */
export const MAX_OUTPUT_EVENT_BYTES = 64 * KiB;
/** Largest answer to one read of a page or a range. */
export const MAX_PAGE_BYTES = 4 * MiB;
export const DEFAULT_PAGE_BYTES = 256 * KiB;
/** Default rows of one page of a list: slim rows are about 1 KiB each. */
export const DEFAULT_LIST_ROWS = 1000;
/** Characters of all rows of one page; the page then has fewer rows. In JSON a character can take 6 bytes. */
export const MAX_LIST_CHARS = 4 * MiB;
/** Characters of a command, and of all arguments together, in a row of a list. */
export const MAX_ROW_CHARS = 1024;
/** Largest payload of a record. Larger data is refused, or recorded in several events. */
export const MAX_RECORD_BYTES = 8 * MiB;
/** Facts of a process as JSON: its last record carries them together with all its segments. */
export const MAX_FACTS_BYTES = MAX_RECORD_BYTES - 512 * KiB;
/** Input bytes of one event; a larger write has several events. Base64 makes it a third more. */
export const MAX_INPUT_EVENT_BYTES = 1 * MiB;
/** Characters of a command typed into a terminal, and of the key names of one write: in JSON one can take 6 bytes. */
export const MAX_TYPED_CHARS = 1 * MiB;

/** Connections that the kernel queues while a program is busy. Beyond it TCP callers wait for seconds, and callers on a unix socket are refused. */
export const BACKLOG = 4096;

/** How far output may be ahead of a reader with backpressure: well below what a journal keeps of its end. */
export const PACE_BYTES = 16 * MiB;
/** For a reader that leaves: in effect no limit. */
export const UNPACED_BYTES = 2 ** 47;
/** How often a reader whose buffer is full renews its backpressure. */
export const STILL_HERE_MS = 4000;
