// The host: every process of one state folder, behind one interface. Each operation finds its process through its owner
// and leaves the work to the part whose noun it is.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { BufferPool } from '../base/buffer-pool.ts';
import { systemClock, type Clock } from '../base/clock.ts';
import { systemDisk, type Disk } from '../base/disk.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { HostApi, Owner, Results } from '../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES, defaultLimits, type Limits } from '../protocol/limits.ts';
import { parseParams, type OperationName, type Params } from '../protocol/operations.ts';
import { Journal } from '../journal/journal.ts';
import { DiskUsage } from '../journal/journal-file.ts';
import { Matcher } from '../journal/matcher.ts';
import { readPage, readRange } from '../journal/reader.ts';
import { Syncer } from '../journal/syncer.ts';
import { waitUntil } from '../journal/wait-until.ts';
import { Children } from './children.ts';
import type { ConditionTools } from './conditions.ts';
import { FeedFile } from './feed-file.ts';
import type { HeldProcess } from './held-process.ts';
import { Kin } from './kin.ts';
import type { Surroundings } from './launch-plan.ts';
import { recoverProcesses } from './recover.ts';
import { Registry } from './registry.ts';
import { Starter, type StarterOptions } from './starter.ts';
import { sendSignal, type TerminationTools } from './termination.ts';
import { byteSource, headTailOf, lastLines } from './views.ts';
import { waitFor } from './waiting.ts';

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

export class Host implements HostApi {
  private readonly clock: Clock;
  private readonly limits: Limits;
  private readonly version: string;
  private readonly startedUs: number;
  private readonly report: (message: string) => void;
  private readonly children: Children;
  private readonly registry: Registry;
  private readonly usage: DiskUsage;
  private readonly starter: Starter;
  private readonly starterOptions: StarterOptions;
  private readonly kin: Kin;
  private readonly feed: FeedFile;
  private readonly matcher: Matcher;
  private readonly syncer: Syncer;
  private readonly conditionTools: ConditionTools;
  private readonly termination: TerminationTools;
  private parkedWaits = 0;
  private closing: Promise<void> | undefined;

  /** Opens the folder and takes up what an earlier host left in it. */
  static async open(options: HostOptions): Promise<Host> {
    const host = new Host(options);
    await host.recover();
    return host;
  }

  private constructor(options: HostOptions) {
    const clock = (this.clock = options.clock ?? systemClock);
    const limits = (this.limits = { ...defaultLimits, ...options.limits });
    const disk = options.disk ?? systemDisk;
    const pool = new BufferPool(BATCH_BYTES, 16);
    this.matcher = new Matcher({ clock });
    this.version = options.version ?? 'unknown';
    this.startedUs = clock.nowUs();
    this.report = options.report ?? (() => undefined);
    this.usage = new DiskUsage(limits.totalBytes, () => this.overTotal());
    const folder = join(options.folder, 'journals');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.children = new Children({
      adopts: options.adopts ?? false,
      kind: options.children,
      orphanEnded: () => this.kin.orphanEnded(),
    });
    this.kin = new Kin(clock, this.children.adopts);
    this.registry = new Registry({
      clock,
      limits,
      usage: this.usage,
      forgotten: (process) => this.forgotten(process),
    });
    this.syncer = new Syncer(clock, this.report);
    const feedPlace = {
      disk,
      folder: join(options.folder, 'feed'),
      usage: new DiskUsage(Infinity, () => undefined),
    };
    this.feed = new FeedFile({ place: feedPlace, limits, clock, pool });
    this.starterOptions = {
      registry: this.registry,
      children: this.children,
      surroundings: options.surroundings,
      watcher: {
        exited: (process) => this.exited(process),
        closed: (process) => this.closed(process),
      },
      usage: this.usage,
      ...{ folder, disk, clock, pool, limits },
    };
    this.starter = new Starter(this.starterOptions);
    this.termination = { clock, kin: this.kin, graceMs: limits.graceMs };
    this.conditionTools = {
      clock,
      search: (process, condition, from) => {
        const pattern = condition.kind === 'text' ? condition.text : condition.pattern;
        const kind = condition.kind === 'text' ? 'text' : 'regex';
        const { ignoreCase = false } = condition;
        return this.matcher.search(byteSource(process.journal), {
          pattern,
          kind,
          ignoreCase,
          ...from,
          limit: 1,
        });
      },
      settling: (process, wake) => this.kin.onChange(process, wake),
      listening: (process, port) => this.kin.listening(process, port),
    };
  }

  async start(owner: Owner, input: Params<'start'>): Promise<Results['start']> {
    const spec = this.params('start', input);
    const { process, attached } = await this.starter.start(owner, spec);
    if (!attached) this.started(process);
    return { process: process.info(), attached };
  }

  async list(owner: Owner, input: Params<'list'>): Promise<Results['list']> {
    const { found, total } = this.registry.list(owner, this.params('list', input));
    return { processes: found.map((process) => process.info()), total };
  }

  async get(owner: Owner, input: Params<'get'>): Promise<Results['get']> {
    return this.find(owner, this.params('get', input)).info();
  }

  async read(owner: Owner, input: Params<'read'>, signal?: AbortSignal): Promise<Results['read']> {
    const params = this.params('read', input);
    const process = this.find(owner, params);
    const { after = 0, maxBytes = DEFAULT_PAGE_BYTES, offset } = params;
    if (params.waitMs !== undefined && process.live && process.journal.visibleSeq <= after) {
      const waits = [{ process, for: [{ kind: 'growth', after } as const] }];
      await this.park(() =>
        waitFor({ waits, mode: 'first', timeoutMs: params.waitMs, signal }, this.conditionTools),
      );
    }
    // Taken before the page is read: what comes later belongs to the next one.
    const { state, outcome, live } = process;
    const page = await readPage(process.journal, { after, maxBytes, offset });
    const seq = process.journal.visibleSeq;
    return {
      ...page,
      seq,
      state,
      ...(outcome && { outcome }),
      end: !live && page.nextAfter >= seq,
    };
  }

  async range(owner: Owner, input: Params<'range'>): Promise<Results['range']> {
    const params = this.params('range', input);
    const process = this.find(owner, params);
    const { live } = process;
    const totalBytes = process.journal.visibleOffset;
    const found = await readRange(
      process.journal,
      params.offset,
      params.maxBytes ?? DEFAULT_PAGE_BYTES,
    );
    const { offset, bytes, missedBytes } = found ?? {
      offset: params.offset,
      bytes: Buffer.alloc(0),
      missedBytes: 0,
    };
    return {
      offset,
      bytes,
      missedBytes,
      totalBytes,
      end: !live && offset + bytes.length >= totalBytes,
    };
  }

  async text(owner: Owner, input: Params<'text'>): Promise<Results['text']> {
    const { maxBytes, maxLineBytes, ...target } = this.params('text', input);
    const process = this.find(owner, target);
    // Before the output, so that a process said to have ended has all its output here.
    const info = process.info();
    const limits = {
      ...(maxBytes !== undefined && { maxBytes }),
      ...(maxLineBytes !== undefined && { maxLineBytes }),
    };
    return { ...(await headTailOf(process.journal, limits)), process: info };
  }

  async search(
    owner: Owner,
    input: Params<'search'>,
    signal?: AbortSignal,
  ): Promise<Results['search']> {
    const { id, kind = 'regex', ...query } = this.params('search', input);
    const process = this.find(owner, { id });
    return this.matcher.search(byteSource(process.journal), { kind, ...query }, signal);
  }

  async write(owner: Owner, input: Params<'write'>): Promise<Results['write']> {
    const { data = Buffer.alloc(0), eof = false, writeId, ...target } = this.params('write', input);
    const process = this.find(owner, target);
    const written = await process.write(Buffer.from(data), writeId);
    if (eof && !written.repeated) process.endInput();
    return written;
  }

  async resize(owner: Owner, input: Params<'resize'>): Promise<Results['resize']> {
    const params = this.params('resize', input);
    this.find(owner, params).resize(params.size);
    return {};
  }

  async signal(owner: Owner, input: Params<'signal'>): Promise<Results['signal']> {
    const { signal, graceMs, by = owner, ...target } = this.params('signal', input);
    return sendSignal(this.find(owner, target), { signal, by, graceMs }, this.termination);
  }

  async wait(owner: Owner, input: Params<'wait'>, signal?: AbortSignal): Promise<Results['wait']> {
    const { waits, mode = 'first', timeoutMs } = this.params('wait', input);
    const found = waits.map((wait) => ({
      process: this.registry.find(owner, wait.id),
      for: wait.for,
    }));
    return this.park(() => waitFor({ waits: found, mode, timeoutMs, signal }, this.conditionTools));
  }

  async ports(owner: Owner, input: Params<'ports'>): Promise<Results['ports']> {
    return { ports: this.kin.ports(this.find(owner, this.params('ports', input))) };
  }

  async remove(owner: Owner, input: Params<'remove'>): Promise<Results['remove']> {
    const { force = false, ...target } = this.params('remove', input);
    const process = this.find(owner, target);
    if (process.live && !force) {
      throw new HoldfastError('still_running', `Process ${process.facts.id} has not ended.`);
    }
    if (!process.settled) await this.end(process, `removed by ${owner}`);
    process.abandon();
    this.registry.forget(process);
    return {};
  }

  async completions(
    owner: Owner,
    input: Params<'completions'>,
    signal?: AbortSignal,
  ): Promise<Results['completions']> {
    const { subscriber = 'default', limit = 100, waitMs = 0 } = this.params('completions', input);
    const { completions } = this.feed;
    const check = (): Results['completions']['completions'] | undefined => {
      const pending = completions.pending(owner, subscriber, limit);
      return pending.length > 0 ? pending : undefined;
    };
    const subscribe = (wake: () => void): (() => void) => completions.onNew(wake);
    const { clock } = this;
    const found = await this.park(() =>
      waitUntil(check, { clock, timeoutMs: waitMs, signal, subscribe }),
    );
    return { completions: found ?? [] };
  }

  async acknowledge(owner: Owner, input: Params<'acknowledge'>): Promise<Results['acknowledge']> {
    const { subscriber = 'default', numbers } = this.params('acknowledge', input);
    return { acknowledged: this.feed.completions.acknowledge(owner, subscriber, numbers) };
  }

  async health(): Promise<Results['health']> {
    const processes = Array.from(this.registry.all());
    return {
      version: this.version,
      pid: process.pid,
      uptimeMs: Math.round((this.clock.nowUs() - this.startedUs) / 1000),
      live: this.registry.size - this.registry.endedCount,
      ended: this.registry.endedCount,
      parkedWaits: this.parkedWaits,
      journalBytes: this.usage.bytes,
      rssBytes: process.memoryUsage.rss(),
      degraded: processes.filter(
        ({ journal }) => journal instanceof Journal && journal.degraded !== undefined,
      ).length,
      children: this.children.kind,
    };
  }

  /** Ends everything that was started and leaves no descendant. */
  close(): Promise<void> {
    this.closing ??= this.closeAll();
    return this.closing;
  }

  private params<Name extends OperationName>(name: Name, input: unknown): Params<Name> {
    if (this.closing) throw new HoldfastError('host_closed', 'The host has been closed.');
    return parseParams(name, input);
  }

  private find(owner: Owner, target: { readonly id: string }): HeldProcess {
    return this.registry.find(owner, target.id);
  }

  private async park<T>(wait: () => Promise<T>): Promise<T> {
    if (this.parkedWaits >= this.limits.parkedWaits) {
      throw new HoldfastError(
        'limit_reached',
        `${this.parkedWaits} callers are waiting, which is the limit "parkedWaits".`,
      );
    }
    this.parkedWaits += 1;
    try {
      return await wait();
    } finally {
      this.parkedWaits -= 1;
    }
  }

  private started(process: HeldProcess): void {
    this.kin.started(process);
    const { journal, facts } = process;
    if (journal instanceof Journal) journal.onGrowth(() => this.syncer.mark(journal));
    const { hardTimeoutMs } = facts;
    if (hardTimeoutMs === undefined) return;
    const cancel = this.clock.after(hardTimeoutMs, () => {
      process.noteTimeout(hardTimeoutMs);
      void this.end(process, 'hard timeout');
    });
    const stop = process.onChange(() => {
      if (process.outcome === undefined) return;
      cancel();
      stop();
    });
  }

  private exited(process: HeldProcess): void {
    this.kin.exited(process);
    void this.complete(process);
  }

  private closed(process: HeldProcess): void {
    if (process.journal instanceof Journal) this.syncer.forget(process.journal);
    process.lighten();
    this.registry.noteClosed(process);
    this.feed.tidy();
  }

  private forgotten(process: HeldProcess): void {
    this.kin.forget(process);
    this.feed.completions.processForgotten(process.facts.serial);
  }

  private async complete(process: HeldProcess): Promise<void> {
    const { facts, outcome } = process;
    if (outcome === undefined || this.feed.completions.has(facts.serial)) return;
    const { durationMs, bytes } = process.info();
    const text = await lastLines(process.journal, LAST_LINES_BYTES).catch(() => '');
    this.feed.completions.add(facts.serial, {
      id: facts.id,
      owner: facts.owner,
      ...(facts.name !== undefined && { name: facts.name }),
      command: facts.command.slice(0, LAST_LINES_BYTES),
      outcome,
      durationMs,
      bytes: bytes.total,
      lastLines: text,
      atMs: this.clock.wallMs(),
      ...(facts.labels && { labels: facts.labels }),
    });
  }

  private async end(process: HeldProcess, by: string): Promise<void> {
    try {
      await sendSignal(process, { signal: 'terminate', by }, this.termination);
    } catch (error) {
      // It ended by itself in the meantime.
      if (!(error instanceof HoldfastError && error.code === 'not_running')) throw error;
    }
  }

  private overTotal(): void {
    setImmediate(() => this.registry.keepBounds());
  }

  private async recover(): Promise<void> {
    await this.feed.open();
    for (const { process, wasLive } of recoverProcesses(this.starterOptions, this.report)) {
      process.lighten();
      if (wasLive) await this.kin.restored(process);
      else process.settled = true;
      this.registry.add(process);
      await this.complete(process);
    }
  }

  private async closeAll(): Promise<void> {
    const unsettled = Array.from(this.registry.all()).filter((process) => !process.settled);
    await Promise.all(unsettled.map((process) => this.end(process, 'host closed')));
    for (const process of this.registry.all()) process.abandon();
    this.kin.endStrays();
    this.syncer.close();
    this.registry.close();
    this.feed.close();
    this.children.close();
    await this.matcher.close();
  }
}
