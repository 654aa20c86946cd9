// HostApi: the interface of a host. In process it is the Host itself; over the keeper's socket it is a link. One contract
// suite runs over every implementation.

import type { CancelSignal } from '../base/cancel-signal.ts';
import type { HistogramFigures } from '../base/observe/histogram.ts';
import type { Need } from './dashboard/attention.ts';
import type { AllMeans, Cause, Confinement } from './confinement/confinement.ts';
import type { Limits } from './limits.ts';
import type { HeadTailText, SearchResult } from './views.ts';
import type { OperationName, Params } from './operations.ts';
import type { Outcome, ProcessInfo, ProcessState, Usage } from './process.ts';
import type { RunResult } from './run.ts';

/** The caller. Sees and touches only its own processes. */
export type Owner = string;
/** Sees all owners' processes. */
export const EVERYONE: Owner = '*';

/** Where a program that calls came from. */
export interface CallerOrigin {
  /** The host started it, or something that it came from. */
  readonly inside: boolean;
  /** Of the process it came from; absent when that is not known. */
  readonly owner?: Owner;
  /** It came from elsewhere, and is confined there: in a sandbox of another keeper, or in a pid namespace of its own. */
  readonly confinedBy?: 'keeper' | 'namespace';
}

export interface Page {
  /** Whole records for `decodeRecords`. */
  readonly records: Buffer;
  /** The consumer calls it after its last use of the records, so that the next page reuses their memory. */
  readonly release?: () => void;
  /** `after` of the next read. */
  readonly nextAfter: number;
  readonly nextOffset: number;
  /** Events before this page that can no longer be read. */
  readonly missed?: Missed;
  /** Number of the newest event. */
  readonly seq: number;
  readonly state: ProcessState;
  readonly outcome?: Outcome;
  /** This is the last page. */
  readonly end: boolean;
  /** If requested. */
  readonly uncounted?: UncountedOfPage;
}

/** The counted number of an output or exit event is its number less the uncounted events up to it. */
interface UncountedOfPage {
  /** Uncounted events up to `after`. */
  readonly before: number;
  /** The event after which the page was requested. */
  readonly after: number;
  /** Numbers of the uncounted events in the page's range, also where events are missing. */
  readonly seqs: readonly number[];
  /** Counted events that can be read now. */
  readonly count: number;
}

export interface Missed {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly bytes: number;
  /** limit: dropped by the size limit. storage: the disk refused. damage: the disk no longer holds what was written. */
  readonly reason: 'limit' | 'storage' | 'damage';
}

interface ByteRange {
  /** Later than requested if bytes are missing in between. */
  readonly offset: number;
  readonly bytes: Buffer;
  readonly missedBytes: number;
  readonly totalBytes: number;
  readonly end: boolean;
}

export interface Survivor {
  readonly pid: number;
  readonly command: string;
}

/** A process that a signal could not be sent to. */
export interface RefusedSignal extends Survivor {
  /** Another user's process; no free descriptor for a pidfd; or the kernel lacks or forbids the call. */
  readonly reason: 'not_permitted' | 'too_many_files' | 'unsupported';
}

/** The result of closing a host. */
export interface CloseReport {
  /** Processes that were alive or had living descendants, and have ended with all of them. */
  readonly ended: number;
  /** Orphans of unknown origin that were ended too. */
  readonly strays?: number;
  /** Still alive after SIGKILL, or not to be signalled for `reason`. */
  readonly survivors: readonly (Survivor & {
    readonly id: string;
    readonly owner: Owner;
    readonly reason?: RefusedSignal['reason'];
  })[];
  /** Failed steps, each with its reason. */
  readonly problems: readonly string[];
}

export interface SignalResult {
  /** Pids that were signalled; for the root's group, the members that were found. */
  readonly signalled: readonly number[];
  /** Those of `signalled` that had left the group. */
  readonly escapees: readonly number[];
  /** Only for terminate and kill: descendants that are still alive. */
  readonly survivors: readonly Survivor[];
  /** The grace passed and SIGKILL was sent. */
  readonly escalated: boolean;
  /** Processes that did not get the signal. For terminate and kill only those that are still alive. */
  readonly refused?: readonly RefusedSignal[];
  /** Why the search for descendants outside the group failed. Some may be alive. */
  readonly unsearched?: 'too_many_files';
}

export interface Met {
  readonly id: string;
  /** Index of the condition among those given for this process. */
  readonly index: number;
  readonly kind: Params<'wait'>['waits'][number]['for'][number]['kind'];
  /** False: the process has ended, so the condition can no longer be met. */
  readonly met: boolean;
  /** Newest event and output bytes when it was met: continue from here. */
  readonly after: number;
  readonly offset: number;
  /** The matched text and its line. */
  readonly match?: string;
  readonly line?: string;
  /** Offset of that line in the output. */
  readonly lineOffset?: number;
  readonly port?: number;
  readonly process: ProcessInfo;
}

export interface WaitResult {
  /** Empty after a timeout. */
  readonly met: readonly Met[];
  readonly timedOut: boolean;
}

export interface Completion {
  readonly number: number;
  readonly id: string;
  /** In a fleet: the name of the host that reports it. */
  readonly host?: string;
  readonly owner: Owner;
  readonly name?: string;
  readonly command: string;
  readonly outcome: Outcome;
  readonly durationMs: number;
  readonly usage?: Usage;
  readonly causes?: readonly Cause[];
  readonly confinement?: Confinement;
  readonly bytes: number;
  readonly lastLines: string;
  readonly atMs: number;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface ListeningPort {
  readonly port: number;
  readonly address: string;
  readonly pid: number;
}

/** One living process of a start: the root or a descendant. */
export interface TreeMember {
  readonly pid: number;
  /** Its parent's pid; not one of the members for the root and for those that lost their parent. */
  readonly parent: number;
  readonly command: string;
  /** One letter of the kernel: R runs, S sleeps, D waits for a device, T is stopped. */
  readonly state: string;
  /** Processor time that it has used so far. */
  readonly cpuMs: number;
  /** Resident, with pages that it shares with others. */
  readonly memoryBytes: number;
}

/** What one owner uses. */
export interface OwnerUse {
  readonly owner: Owner;
  readonly live: number;
  readonly ended: number;
  /** Stored output. */
  readonly bytes: number;
}

/** By processes of which nothing is left. */
export interface Spent {
  readonly userMs: number;
  readonly systemMs: number;
  readonly readBytes: number;
  readonly writtenBytes: number;
  /** How many of them met a limit, by its kind. */
  readonly limited: Readonly<Partial<Record<Cause['kind'], number>>>;
}

/** What a host has measured since it started. */
export interface Measured {
  /** Absent in earlier keepers. */
  readonly spent?: Spent;
  readonly starts: HistogramFigures;
  readonly exits: HistogramFigures;
  readonly waits: HistogramFigures;
  /** How many processes ended how. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly journals: {
    /** The most that all journals may occupy. */
    readonly limitBytes: number;
    /** Journals that are being written. */
    readonly open: number;
    /** Journals that the disk refuses now. */
    readonly refused: number;
  };
}

export interface Health {
  readonly version: string;
  readonly pid: number;
  readonly uptimeMs: number;
  readonly live: number;
  readonly ended: number;
  readonly parkedWaits: number;
  readonly journalBytes: number;
  readonly rssBytes: number;
  /** Processes whose output cannot be stored now. */
  readonly degraded: number;
  readonly children: 'posix' | 'node';
  /** Absent from earlier keepers and from fleets. */
  readonly measured?: Measured;
}

export interface ProcessPage {
  /** Fewer than requested if they are large; `total` and `next` show whether there are more. */
  readonly processes: readonly ProcessInfo[];
  readonly total: number;
  /** For paging with `before`: `before` of the next page; absent on the last one. */
  readonly next?: number;
  /** In a fleet: hosts that did not answer in time. Their processes are missing here. */
  readonly incomplete?: readonly string[];
}

export interface Results {
  start: { readonly process: ProcessInfo; readonly attached: boolean };
  list: ProcessPage;
  changes: {
    /** For the next question, with `version` as `after`. */
    readonly epoch: string;
    readonly version: number;
    /** Forget every process: these are all of them, together with the pages that follow. */
    readonly reset: boolean;
    /** There is more: ask again at once. */
    readonly more: boolean;
    readonly changed: readonly ProcessInfo[];
    readonly removed: readonly { readonly owner: Owner; readonly id: string }[];
  };
  get: ProcessInfo;
  read: Page;
  range: ByteRange;
  text: HeadTailText & { readonly process: ProcessInfo };
  search: SearchResult;
  /** `seq`: the event of the write. */
  write: { readonly bytes: number; readonly repeated: boolean; readonly seq: number };
  resize: { readonly seq: number };
  signal: SignalResult;
  run: RunResult;
  runWait: RunResult;
  mark: { readonly seq: number };
  keyboard: Record<string, never>;
  wait: WaitResult;
  ports: { readonly ports: readonly ListeningPort[] };
  /** `total` is larger when not all are listed. */
  tree: { readonly members: readonly TreeMember[]; readonly total: number };
  attention: { readonly needs: readonly Need[] };
  dismiss: Record<string, never>;
  remove: Record<string, never>;
  completions: { readonly completions: readonly Completion[] };
  acknowledge: { readonly acknowledged: number };
  lease: { readonly held: boolean };
  holdLease: Record<string, never>;
  owners: { readonly owners: readonly OwnerUse[] };
  limits: Limits;
  /** What this machine can enforce, and why not. */
  enforcement: AllMeans;
  health: Health;
}

export type HostApi = {
  readonly [Name in OperationName]: (
    owner: Owner,
    params: Params<Name>,
    signal?: CancelSignal,
  ) => Promise<Results[Name]>;
} & {
  /** In process: ends every process. Over a link: closes the link; the processes continue. */
  close(): Promise<void>;
};
