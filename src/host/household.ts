// The household: the parts of a host that its processes live in, and what happens to a process there — when it starts,
// exits, closes, is forgotten, is found again after a crash, and when everything ends.

import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BufferPool } from '../base/buffer-pool.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { errnoOf, systemDisk, type Disk } from '../base/disk.ts';
import { Later } from '../base/later.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Owner, SignalResult } from '../protocol/host-api.ts';
import { defaultLimits, type Limits } from '../protocol/limits.ts';
import type { StartSpec } from '../protocol/operations.ts';
import { EndedJournal } from '../journal/ended-journal.ts';
import { Journal } from '../journal/journal.ts';
import { DiskUsage } from '../journal/disk-usage.ts';
import { Syncer } from '../journal/syncer.ts';
import { Children } from './children.ts';
import type { Completions } from './completions.ts';
import { FeedFile } from './feed-file.ts';
import type { HeldProcess, ProcessWatcher } from './held-process.ts';
import { endWhenIdle, onceExited } from './idle.ts';
import { Kin } from './kin.ts';
import { LeaseFile } from './lease-file.ts';
import { Leases } from './leases.ts';
import type { Surroundings } from './launch-plan.ts';
import { loadPosix } from './posix.ts';
import { recoverProcesses } from './recover.ts';
import { Registry } from './registry.ts';
import { Starter, type StartAnswer, type StarterOptions } from './starter.ts';
import { ShellMarks } from './shell-marks.ts';
import { sendSignal, type SignalRequest } from './termination.ts';
import { endUntold } from './untold.ts';
import { lastLines } from './views.ts';

export interface HostOptions {
  /** Where journals are kept. One host at a time. */
  readonly folder: string;
  /** What children inherit. */
  readonly surroundings: Surroundings;
  readonly version?: string;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly disk?: Disk;
  readonly report?: (message: string) => void;
  /** Become the reaper of every descendant. Only in a program of its own: it would take other children's exits. */
  readonly adopts?: boolean;
  readonly children?: 'posix' | 'node';
}

/** Of the output's end, in a completion. */
const LAST_LINES_BYTES = 1024;
/** Events are written in pieces of this size at most; a few are kept for reuse. */
const BATCH_BYTES = 256 * 1024;
/** Whoever waited for an end has the processor first, which is mostly the one that we are on. */
const ATTEND_MS = 1;
/** What nobody waits for is done for several together. */
const TIDY_TOGETHER = 8;
const TIDY_MS = 20;

export class Household {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly usage: DiskUsage;
  readonly children: Children;
  readonly registry: Registry;
  readonly kin: Kin;
  readonly leases: Leases;
  private readonly report: (message: string) => void;
  private readonly starter: Starter;
  private readonly starterOptions: StarterOptions;
  private readonly feed: FeedFile;
  private readonly syncer: Syncer;
  /** Those that have exited. */
  private readonly unattended = new Later<HeldProcess>(ATTEND_MS, (all) => this.attend(all));
  /** Those that have closed. */
  private readonly untidy = new Later<HeldProcess>(TIDY_MS, (all) => this.tidy(all));

  constructor(options: HostOptions) {
    const clock = (this.clock = options.clock ?? systemClock);
    const limits = (this.limits = { ...defaultLimits, ...options.limits });
    const disk = options.disk ?? hostDisk();
    const pool = new BufferPool(BATCH_BYTES, 64);
    const folder = join(options.folder, 'journals');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.report = options.report ?? (() => undefined);
    const usage = (this.usage = new DiskUsage(limits.totalBytes, () =>
      setImmediate(() => this.registry.keepBounds()),
    ));
    this.children = new Children({
      adopts: options.adopts ?? false,
      kind: options.children,
      orphanEnded: () => this.kin.orphanEnded(),
    });
    this.kin = new Kin({
      clock,
      told: this.children.adopts,
      settled: (process) => this.registry.noteSettled(process),
    });
    this.registry = new Registry({
      clock,
      limits,
      usage,
      forgotten: (process) => this.forgotten(process),
      discard: (journal) => this.starter.discard(journal),
      look: (process) => this.kin.check(process),
    });
    this.leases = new Leases({
      clock,
      file: new LeaseFile(join(options.folder, 'leases.json'), this.report),
      ranOut: (owner, spareLabel) => this.leaseRanOut(owner, spareLabel),
    });
    this.syncer = new Syncer({ clock, disk, report: this.report });
    const feedUsage = new DiskUsage(Infinity, () => undefined, usage.refusals);
    const place = { disk, folder: join(options.folder, 'feed'), usage: feedUsage };
    this.feed = new FeedFile({ place, limits, clock, pool });
    const { registry, children } = this;
    const surroundings = {
      ...options.surroundings,
      shells: new ShellMarks(join(options.folder, 'shells')),
    };
    this.starterOptions = {
      fingerprintKey: folderKey(join(options.folder, 'fingerprint.key')),
      registry,
      children,
      surroundings,
      watcher: this.watcher(),
      usage,
      folder,
      disk,
      clock,
      pool,
      limits,
    };
    this.starter = new Starter(this.starterOptions);
  }

  private watcher(): ProcessWatcher {
    return {
      exited: (process) => this.unattended.add(process),
      closed: (process) => this.closed(process),
    };
  }

  get completions(): Completions {
    return this.feed.completions;
  }

  async start(owner: Owner, spec: StartSpec): Promise<StartAnswer> {
    const answer = await this.starter.start(owner, spec);
    if (!answer.attached) this.started(answer.process);
    return answer;
  }

  /** Resolves when no start of these ids is under way. */
  async startsUnderWay(owner: Owner, ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.starter.underWay(owner, id)?.catch(() => undefined);
  }

  signal(process: HeldProcess, request: SignalRequest): Promise<SignalResult> {
    return sendSignal(process, request, {
      clock: this.clock,
      kin: this.kin,
      graceMs: this.limits.graceMs,
    });
  }

  /** Ends a process and all its kin, if it has not ended by itself. */
  async end(process: HeldProcess, by: string): Promise<void> {
    try {
      await this.signal(process, { signal: 'terminate', by });
    } catch (error) {
      // It ended by itself in the meantime.
      if (!(error instanceof HoldfastError && error.code === 'not_running')) throw error;
    }
  }

  /** Takes up what an earlier host left in the folder. */
  async recover(): Promise<void> {
    await this.feed.open();
    const { recovered, untold } = recoverProcesses(this.starterOptions, this.report);
    await endUntold(untold);
    for (const { process, wasLive } of recovered) {
      process.lighten();
      if (wasLive) await this.kin.restored(process);
      else process.settled = true;
      this.registry.add(process);
      await this.complete(process);
    }
    this.registry.keepBounds();
    this.leases.restore();
  }

  /** Ends everything that was started and leaves no descendant. */
  async close(): Promise<void> {
    await this.starter.close();
    this.leases.close();
    const unsettled = Array.from(this.registry.all()).filter((process) => !process.settled);
    await Promise.all(unsettled.map((process) => this.end(process, 'host closed')));
    for (const process of this.registry.all()) process.abandon();
    this.kin.endStrays();
    this.unattended.now();
    this.untidy.now();
    await this.syncer.close();
    this.registry.close();
    this.feed.close();
    this.children.close();
  }

  private started(process: HeldProcess): void {
    this.kin.started(process);
    const { journal, facts } = process;
    if (journal instanceof Journal) journal.onGrowth(() => this.syncer.mark(journal));
    const { hardTimeoutMs, terminal } = facts;
    const { clock } = this;
    if (terminal?.idleTimeoutMs !== undefined)
      endWhenIdle(process, terminal.idleTimeoutMs, clock, () => this.end(process, 'idle timeout'));
    if (hardTimeoutMs === undefined) return;
    const cancel = clock.after(hardTimeoutMs, () => {
      process.noteTimeout(hardTimeoutMs);
      void this.end(process, 'hard timeout');
    });
    onceExited(process, cancel);
  }

  private leaseRanOut(owner: Owner, spareLabel: string | undefined): void {
    for (const process of this.registry.all()) {
      const { facts, settled } = process;
      const spared = spareLabel !== undefined && Object.hasOwn(facts.labels ?? {}, spareLabel);
      if (facts.owner === owner && !settled && !spared) void this.end(process, 'lease ran out');
    }
  }

  private attend(exited: readonly HeldProcess[]): void {
    for (const process of exited) {
      this.kin.exited(process);
      void this.complete(process);
    }
  }

  private closed(process: HeldProcess): void {
    this.registry.noteClosed(process);
    this.untidy.add(process);
    if (this.untidy.size === TIDY_TOGETHER) setImmediate(() => this.untidy.now());
  }

  /** What nobody waits for. */
  private tidy(closed: readonly HeldProcess[]): void {
    for (const process of closed) {
      if (process.journal instanceof Journal) this.syncer.forget(process.journal);
      process.lighten();
      if (process.journal instanceof EndedJournal) this.syncer.putAway(process.journal);
    }
    this.registry.keepBounds();
    this.feed.tidy();
    this.starter.prepare();
  }

  private forgotten(process: HeldProcess): void {
    this.kin.forget(process);
    this.feed.completions.processForgotten(process.facts.serial);
  }

  private async complete(process: HeldProcess): Promise<void> {
    const { facts, outcome } = process;
    if (outcome === undefined || this.feed.completions.has(facts.serial)) return;
    const durationMs = process.durationMs();
    const bytes = process.journal.visibleOffset;
    const text = await lastLines(process.journal, LAST_LINES_BYTES).catch(() => '');
    const { completions } = this.feed;
    completions.add(facts.serial, {
      number: completions.next,
      id: facts.id,
      owner: facts.owner,
      command: facts.command.slice(0, LAST_LINES_BYTES),
      outcome,
      durationMs,
      bytes,
      lastLines: text,
      atMs: this.clock.wallMs(),
      ...(facts.name !== undefined && { name: facts.name }),
      ...(facts.labels && { labels: facts.labels }),
    });
  }
}

/** Where system calls can be made, memory lets go of what is put away. */
function hostDisk(): Disk {
  const posix = loadPosix();
  return posix ? { ...systemDisk, forgetPages: (fd) => posix.forgetPages(fd) } : systemDisk;
}

/** A secret that is made once per folder. Where it cannot be kept it lasts as long as this program. */
function folderKey(path: string): Buffer {
  const made = randomBytes(32);
  try {
    writeFileSync(path, made, { flag: 'wx', mode: 0o600 });
    return made;
  } catch (error) {
    return errnoOf(error) === 'EEXIST' ? readFileSync(path) : made;
  }
}
