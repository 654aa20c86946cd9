// The life cycle of processes: the parts of a host, and what happens when a process starts, exits, closes, is deleted
// or is recovered, and when the host closes.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { BufferPool } from '../base/bytes/buffer-pool.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { DeferredBatch } from '../base/deferred-batch.ts';
import { Turns } from '../base/turns.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { CloseReport, Owner, SignalResult } from '../protocol/host-api.ts';
import { completeLimits, type Limits } from '../protocol/limits.ts';
import type { StartSpec } from '../protocol/operations.ts';
import { EndedJournal } from '../journal/read/ended-journal.ts';
import { Journal } from '../journal/write/journal.ts';
import { DiskUsage } from '../journal/write/disk-usage.ts';
import type { Matcher } from '../journal/search/matcher.ts';
import { Reserve } from '../journal/write/disk-reserve.ts';
import { Syncer } from '../journal/write/syncer.ts';
import type { Children } from './child/children.ts';
import { Closing } from './closing.ts';
import type { Completions } from './completions/completions.ts';
import type { ProcessFacts } from './process/facts.ts';
import { endingNotice } from './completions/ending-notice.ts';
import { FeedFile } from './completions/feed-file.ts';
import type { HeldProcess } from './process/held-process.ts';
import type { ProcessWatcher } from './process/process-deps.ts';
import { folderKey } from './folder-key.ts';
import { endInTime } from './process/idle.ts';
import { recount } from './process/outcome.ts';
import { DescendantTracker } from './descendants/descendant-tracker.ts';
import { ListChanges } from './list-changes.ts';
import { Measures } from './observe/measures.ts';
import { openChildren } from './descendants/orphan-use.ts';
import { LeaseFile } from './leases/lease-file.ts';
import { LEASE_ENDED, Leases } from './leases/leases.ts';
import { isShortage } from '../system/proc-table.ts';
import { hostDisk } from '../system/descriptor-reserve.ts';
import type { HostOptions } from './host-options.ts';
import { recoverProcesses } from './restore.ts';
import { Registry } from './registry.ts';
import { Starter, type StartAnswer, type StarterOptions } from './start/starter.ts';
import { ShellMarks } from './terminal/shell-marks.ts';
import { removeTerminalFolder } from '../journal/terminal-folder.ts';
import { sendSignal, type SignalRequest } from './descendants/termination.ts';
import { outcomeReason, type Transition } from './transitions.ts';
import { openControl, type ResourceControl } from './limits/resource-control.ts';
import { watchProcess } from './limits/watch-process.ts';
import { killUnrecordedStarts } from './descendants/unrecorded-starts.ts';

/** Events are written in pieces of this size at most; a few are kept for reuse. */
const BATCH_BYTES = 256 * 1024;
/** The kernel usually wakes the waiting client on our processor; bookkeeping 1 ms later lets it run first. */
const EXITED_MS = 1;
/** Clean-up that nobody waits for is done in batches. */
const MAX_CLOSED_BATCH = 8;
const CLOSED_MS = 20;

export class ProcessLifecycle {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly usage: DiskUsage;
  readonly children: Children;
  readonly registry: Registry;
  readonly tracker: DescendantTracker<HeldProcess>;
  readonly leases: Leases;
  readonly control: ResourceControl;
  readonly changes = new ListChanges();
  readonly measures: Measures;
  private readonly report: (message: string) => void;
  private readonly tell: (transition: Transition) => void;
  readonly starter: Starter;
  private readonly starterOptions: StarterOptions;
  readonly feed: FeedFile;
  private readonly syncer: Syncer;
  private keepingBounds = false;
  private readonly reserve: Reserve;
  /** Closed processes whose journals are not stored yet: each keeps a file open. */
  private readonly unwritten = new Set<HeldProcess>();
  readonly exited = new DeferredBatch<HeldProcess>(EXITED_MS, (all) => this.onExited(all));
  private readonly ended = new DeferredBatch<HeldProcess>(CLOSED_MS, (all) => this.cleanUp(all));

  constructor(options: HostOptions) {
    const clock = (this.clock = options.clock ?? systemClock);
    this.measures = new Measures(clock);
    const limits = (this.limits = completeLimits(options.limits));
    const disk = options.disk ?? hostDisk();
    const pool = new BufferPool(BATCH_BYTES, 64);
    const folder = join(options.folder, 'journals');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.report = options.report ?? (() => undefined);
    this.tell = options.transition ?? (() => undefined);
    const usage = (this.usage = new DiskUsage(limits.totalBytes, () => this.keepBoundsSoon()));
    this.children = openChildren(options, () => this.tracker);
    this.control = openControl(options, clock, this.children);
    this.tracker = new DescendantTracker({
      clock,
      isSubreaper: this.children.adopts,
      isRoot: (pid) => this.children.isRoot(pid),
      settled: (process) => this.settled(process),
    });
    this.registry = new Registry({
      clock,
      limits,
      usage,
      forgotten: (...what) => this.forgotten(options.folder, ...what),
      discard: (journal) => this.starter.discard(journal),
      look: (process) => this.tracker.check(process),
    });
    this.leases = new Leases({
      clock,
      file: new LeaseFile(join(options.folder, 'leases.json'), this.report),
      limit: limits.leaseCount,
      end: (concerns, by) => this.endWhere(concerns, by),
    });
    this.syncer = new Syncer({ clock, disk, report: this.report });
    const feedUsage = new DiskUsage(Infinity, () => undefined, usage.refusals);
    const place = { disk, folder: join(options.folder, 'feed'), usage: feedUsage };
    this.feed = new FeedFile({ place, limits, clock, pool });
    this.reserve = new Reserve(join(options.folder, 'reserve'), this.report);
    const shells = new ShellMarks(join(options.folder, 'shells'));
    this.starterOptions = {
      fingerprintKey: folderKey(join(options.folder, 'fingerprint.key')),
      registry: this.registry,
      begin: (process) => this.begin(process),
      leases: this.leases,
      children: this.children,
      surroundings: { ...options.surroundings, shells },
      control: this.control,
      watchLimits: (process, limits) => watchProcess(process, limits, this),
      watcher: this.watcher(),
      usage,
      folder,
      disk,
      clock,
      pool,
      limits,
      earlierPid: options.earlierPid,
    };
    this.starter = new Starter(this.starterOptions);
  }

  /** Once for all writes of a turn of the event loop. */
  private keepBoundsSoon(): void {
    if (this.keepingBounds) return;
    this.keepingBounds = true;
    setImmediate(() => {
      this.keepingBounds = false;
      this.registry.keepBounds();
    });
  }

  private watcher(): ProcessWatcher {
    return {
      exited: (process) => {
        this.note('exit', process, outcomeReason(process.outcome));
        this.measures.exited(process.outcome, process.sinceExitMs() * 1000);
        this.exited.add(process);
      },
      closed: (process) => this.closed(process),
    };
  }

  get completions(): Completions {
    return this.feed.completions;
  }

  start(owner: Owner, spec: StartSpec): Promise<StartAnswer> {
    return this.starter.start(owner, spec);
  }

  /** Resolves when no start of these ids is pending. */
  async startsUnderWay(owner: Owner, ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.starter.underWay(owner, id)?.catch(() => undefined);
  }

  signal(process: HeldProcess, request: SignalRequest): Promise<SignalResult> {
    return sendSignal(process, request, {
      clock: this.clock,
      tracker: this.tracker,
      graceMs: this.limits.graceMs,
      killGroup: ({ facts }) => this.control.kill(facts.serial),
    });
  }

  /** Ends a process and all its descendants. Undefined if it has ended meanwhile. */
  async end(process: HeldProcess, by: string, graceMs?: number): Promise<SignalResult | undefined> {
    try {
      return await this.signal(process, { signal: 'terminate', by, graceMs });
    } catch (error) {
      if (!(error instanceof HoldfastError && error.code === 'not_running')) throw error;
      return undefined;
    }
  }

  /** Recovers the processes of an earlier host. */
  async recover(): Promise<void> {
    this.reserve.fill();
    await this.feed.open();
    // Apply the limits only when all processes are known, so that the first ones do not pay for all.
    this.keepingBounds = true;
    const turns = new Turns();
    const { starterOptions, report } = this;
    const { recovered, unrecorded } = await recoverProcesses(starterOptions, report, turns);
    await killUnrecordedStarts(unrecorded).catch((error: unknown) => {
      if (!isShortage(error)) throw error;
      this.report('programs whose start was never recorded cannot be looked for: too many files');
    });
    this.feed.completions.processesFound(new Set(recovered.map(({ facts }) => facts.serial)));
    await this.tracker.restored(recovered);
    for (const process of recovered) {
      if (!process.settled || process.outcome?.kind === 'lost')
        this.note('recover', process, `from an earlier keeper: ${outcomeReason(process.outcome)}`);
      process.releaseJournal();
      if (process.journal instanceof Journal) this.unwritten.add(process);
      this.registry.add(process);
      this.changes.mark(process);
      await this.complete(process);
      if (turns.isOver()) await turns.next();
    }
    this.keepingBounds = false;
    this.registry.keepBounds();
    this.leases.restore(recovered);
  }

  /** Ends every process with all descendants. Always completes. */
  async close(matcher: Matcher, graceMs = this.limits.graceMs): Promise<CloseReport> {
    const closing = new Closing(this.clock);
    await closing.step('starts under way', () => this.starter.close());
    await closing.step('leases', () => this.leases.close());
    const unsettled = Array.from(this.registry.all()).filter((process) => !process.settled);
    await closing.end(unsettled, graceMs, (process) => this.end(process, 'host closed', graceMs));
    for (const process of this.registry.all())
      await closing.step(`process ${process.facts.id}`, () => process.abandon());
    await closing.storeOutcomes(Array.from(this.registry.all()), this.reserve);
    await closing.endStrays(() => this.tracker.endStrays());
    await closing.step('completions', () => this.exited.flush());
    await closing.step('journals', () => this.ended.flush());
    await closing.step('syncing', () => this.syncer.close());
    await closing.step('retention', () => this.registry.close());
    await closing.step('completions', () => this.feed.close());
    await closing.step('files', () => this.usage.unwantedCreated());
    await closing.step('cgroups', () => this.control.close());
    await closing.step('children', () => this.children.close());
    await closing.step('searches', () => matcher.close());
    return closing.report;
  }

  /** Registers a process that has been started, and watches it. */
  private begin(process: HeldProcess): void {
    this.registry.add(process);
    this.tracker.started(process);
    const { journal, facts } = process;
    this.note('start', process, `pid ${facts.pid}`);
    if (journal instanceof Journal) {
      journal.onGrowth(() => this.syncer.markDirty(journal));
      journal.onStorage((problem) => this.storageChanged(process, problem));
    }
    // The lease was open when the start was admitted, but may have ended since.
    if (!this.leases.covers(facts)) void this.end(process, LEASE_ENDED);
    endInTime(process, this.clock, async (by) => {
      await this.end(process, by);
    });
  }

  private storageChanged(process: HeldProcess, problem: string | undefined): void {
    if (problem === undefined) {
      this.note('recover', process, 'its output is stored again');
      this.reserve.fill();
    } else this.note('degrade', process, `its output cannot be stored: ${problem}`);
  }

  private note(event: Transition['event'], process: HeldProcess, reason: string): void {
    this.changes.note(event, process);
    this.tell({ event, process: process.facts, reason });
  }

  private endWhere(concerns: (facts: ProcessFacts) => boolean, by: string): void {
    for (const process of this.registry.all())
      if (!process.settled && concerns(process.facts)) void this.end(process, by);
  }

  private onExited(processes: readonly HeldProcess[]): void {
    for (const process of processes) {
      this.tracker.exited(process);
      void this.complete(process);
    }
  }

  private settled(process: HeldProcess): void {
    recount(process);
    this.measures.settled(process.use.usage(true), process.causes);
    this.control.removeGroup(process.facts.serial);
    this.note('settle', process, 'no descendant is alive');
    this.registry.noteSettled(process);
  }

  private closed(process: HeldProcess): void {
    this.note('close', process, 'every output has ended');
    this.registry.noteClosed(process);
    this.ended.add(process);
    if (this.ended.size === MAX_CLOSED_BATCH) setImmediate(() => this.ended.flush());
  }

  /** Clean-up that nobody waits for. */
  private cleanUp(processes: readonly HeldProcess[]): void {
    const all = [...this.unwritten, ...processes];
    this.unwritten.clear();
    for (const process of all) {
      if (process.journal instanceof Journal) this.syncer.forget(process.journal);
      process.releaseJournal();
      if (process.journal instanceof EndedJournal) this.syncer.syncAndEvict(process.journal);
      else if (!process.forgotten) this.unwritten.add(process);
    }
    this.registry.keepBounds();
    this.feed.compact();
    this.starter.prepare();
  }

  private forgotten(home: string, process: HeldProcess, reason: string, erases: boolean): void {
    this.note('forget', process, reason);
    this.unwritten.delete(process);
    this.tracker.forget(process);
    this.control.removeGroup(process.facts.serial);
    this.feed.processForgotten(process.facts.serial, erases);
    if (process.facts.streams !== 'pty') return;
    removeTerminalFolder(home, process.info()).catch((error: unknown) => {
      this.report(`a terminal's folder was not removed: ${String(error)}`);
    });
  }

  private async complete(process: HeldProcess): Promise<void> {
    const [{ facts, outcome }, { completions }] = [process, this];
    if (outcome === undefined || completions.has(facts.serial)) return;
    const ending = await endingNotice(process, this.clock);
    completions.add(facts.serial, { number: completions.next, ...ending, outcome });
  }
}
