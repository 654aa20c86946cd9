// HostApi: what a host can be asked, at any distance. In process it is the Host itself; over the keeper's socket it is
// a link. One contract suite runs over every implementation.

import type { Limits } from './limits.ts';
import type { HeadTailText, SearchResult } from './views.ts';
import type { OperationName, Params } from './operations.ts';
import type { Outcome, ProcessInfo, ProcessState } from './process.ts';
import type { RunResult } from './run.ts';

/** Who asks. Sees and touches only its own processes. */
export type Owner = string;
/** Sees all owners' processes: the person whose machine it is. */
export const EVERYONE: Owner = '*';

export interface Page {
  /** Whole records; `decodeRecords` makes events of them. */
  readonly records: Buffer;
  /** To be called by whoever has no more use for the records, so that their memory serves the next page. */
  readonly release?: () => void;
  /** Ask after this next. */
  readonly nextAfter: number;
  readonly nextOffset: number;
  /** What stood before this page and can no longer be given. */
  readonly missed?: Missed;
  /** Number of the newest event there is. */
  readonly seq: number;
  readonly state: ProcessState;
  readonly outcome?: Outcome;
  /** Nothing will ever follow this page. */
  readonly end: boolean;
  /** When asked for. */
  readonly uncounted?: UncountedOfPage;
}

/** By these a reader can count the events that are output or an ending: an event's number less the uncounted events up to it. */
interface UncountedOfPage {
  /** Up to the event that the page was asked for after. */
  readonly before: number;
  /** The number of that event. */
  readonly after: number;
  /** The numbers of those in the page's stretch, also where events are missing from it. */
  readonly seqs: readonly number[];
  /** All that can be read now, by this count. */
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
  /** Later than asked when something is missing in between. */
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
  /** Another user's process; no descriptor was free to hold it; or the kernel lacks or forbids the call. */
  readonly reason: 'not_permitted' | 'too_many_files' | 'unsupported';
}

/** What closing a host did, and what it could not do. */
export interface CloseReport {
  /** Processes that were alive, or had descendants alive, and have ended with all of them. */
  readonly ended: number;
  /** Orphans that were ended as well, if there were any, although nobody knew whose they were. */
  readonly strays?: number;
  /** Still alive, although everything was done to end them; of which process, and what refused the signal if something did. */
  readonly survivors: readonly (Survivor & {
    readonly id: string;
    readonly owner: Owner;
    readonly reason?: RefusedSignal['reason'];
  })[];
  /** What could not be done or looked at, each with its reason. */
  readonly problems: readonly string[];
}

export interface SignalResult {
  /** Process ids that were signalled, the root's group counted by its members found. */
  readonly signalled: readonly number[];
  /** Of these, the ones that had left the group. */
  readonly escapees: readonly number[];
  /** Only for terminate and kill: what is still alive. Empty is the proof that nothing is left. */
  readonly survivors: readonly Survivor[];
  /** True when the grace passed and KILL was sent. */
  readonly escalated: boolean;
  /** Whoever did not get the signal, and why. For terminate and kill only those that are still alive. */
  readonly refused?: readonly RefusedSignal[];
  /** Why descendants outside the group could not be looked for. Some may be alive then. */
  readonly unsearched?: 'too_many_files';
}

export interface Met {
  readonly id: string;
  /** Which of the conditions given for this process, counted from 0. */
  readonly index: number;
  readonly kind: Params<'wait'>['waits'][number]['for'][number]['kind'];
  /** False: it can no longer be met, because the process has ended. */
  readonly met: boolean;
  /** Number of the newest event, and output bytes, when it was met: go on from here. */
  readonly after: number;
  readonly offset: number;
  /** The text that matched and the line it stands in. */
  readonly match?: string;
  readonly line?: string;
  /** Where in the output that line begins. */
  readonly lineOffset?: number;
  readonly port?: number;
  readonly process: ProcessInfo;
}

export interface WaitResult {
  /** Empty when the time was over first. */
  readonly met: readonly Met[];
  readonly timedOut: boolean;
}

export interface Completion {
  readonly number: number;
  readonly id: string;
  readonly owner: Owner;
  readonly name?: string;
  readonly command: string;
  readonly outcome: Outcome;
  readonly durationMs: number;
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

/** What one owner has here. */
export interface OwnerUse {
  readonly owner: Owner;
  readonly live: number;
  readonly ended: number;
  /** Output that can still be read. */
  readonly bytes: number;
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
  /** Processes whose output cannot be stored at the moment. */
  readonly degraded: number;
  readonly children: 'posix' | 'node';
}

export interface ProcessPage {
  /** Fewer than asked for when they are large; `total` and `next` say whether there are more. */
  readonly processes: readonly ProcessInfo[];
  readonly total: number;
  /** When asked with `before` and there are more: ask with this next. */
  readonly next?: number;
}

export interface Results {
  start: { readonly process: ProcessInfo; readonly attached: boolean };
  list: ProcessPage;
  get: ProcessInfo;
  read: Page;
  range: ByteRange;
  text: HeadTailText & { readonly process: ProcessInfo };
  search: SearchResult;
  /** `seq`: the event that records it. */
  write: { readonly bytes: number; readonly repeated: boolean; readonly seq: number };
  resize: { readonly seq: number };
  signal: SignalResult;
  run: RunResult;
  runWait: RunResult;
  mark: { readonly seq: number };
  keyboard: Record<string, never>;
  wait: WaitResult;
  ports: { readonly ports: readonly ListeningPort[] };
  remove: Record<string, never>;
  completions: { readonly completions: readonly Completion[] };
  acknowledge: { readonly acknowledged: number };
  lease: { readonly held: boolean };
  holdLease: Record<string, never>;
  owners: { readonly owners: readonly OwnerUse[] };
  limits: Limits;
  health: Health;
}

export type HostApi = {
  readonly [Name in OperationName]: (
    owner: Owner,
    params: Params<Name>,
    signal?: AbortSignal,
  ) => Promise<Results[Name]>;
} & {
  /** In process: ends every process and leaves nothing. Over a link: lets go of the link; processes go on. */
  close(): Promise<void>;
};
