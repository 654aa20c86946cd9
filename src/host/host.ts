// The host: every process of one state folder, behind one interface. Each operation finds its process through its owner
// and leaves the work to the part whose noun it is.

import { HoldfastError } from '../protocol/errors.ts';
import type { HostApi, Owner, Results } from '../protocol/host-api.ts';
import { DEFAULT_PAGE_BYTES } from '../protocol/limits.ts';
import { parseParams, type OperationName, type Params } from '../protocol/operations.ts';
import { Journal } from '../journal/journal.ts';
import { Matcher } from '../journal/matcher.ts';
import { readRange } from '../journal/reader.ts';
import { waitUntil } from '../journal/wait-until.ts';
import type { ConditionTools } from './conditions.ts';
import type { HeldProcess } from './held-process.ts';
import { Household, type HostOptions } from './household.ts';
import { GrownProcess } from './grown-process.ts';
import { useQuickLibraries } from './quick-libraries.ts';
import { byteSource, SharedTexts } from './views.ts';
import { waitFor } from './waiting.ts';
import { recorded, writeInput } from './write-input.ts';

export class Host implements HostApi {
  private readonly house: Household;
  private readonly version: string;
  private readonly startedUs: number;
  private readonly matcher: Matcher;
  private readonly conditionTools: ConditionTools;
  private readonly texts = new SharedTexts();
  private parkedWaits = 0;
  private closing: Promise<void> | undefined;

  /** Opens the folder and takes up what an earlier host left in it. */
  static async open(options: HostOptions): Promise<Host> {
    useQuickLibraries();
    const host = new Host(options);
    await host.house.recover();
    return host;
  }

  private constructor(options: HostOptions) {
    const house = (this.house = new Household(options));
    const { clock, kin } = house;
    this.version = options.version ?? 'unknown';
    this.startedUs = clock.nowUs();
    this.matcher = new Matcher({ clock });
    this.conditionTools = {
      clock,
      search: (process, condition, from) => {
        const pattern = condition.kind === 'text' ? condition.text : condition.pattern;
        const kind = condition.kind === 'text' ? 'text' : 'regex';
        const query = {
          pattern,
          kind,
          ignoreCase: condition.ignoreCase,
          ...from,
          limit: 1,
        } as const;
        return this.matcher.search(byteSource(process.journal), query);
      },
      settling: (process, wake) => kin.onChange(process, wake),
      listening: (process, port) => kin.listening(process, port),
    };
  }

  async start(
    owner: Owner,
    input: Params<'start'>,
    signal?: AbortSignal,
  ): Promise<Results['start']> {
    const spec = this.params('start', input);
    const { process, attached } = await this.house.start(owner, spec);
    const { waitMs: timeoutMs = 0 } = spec;
    // It has been started: where no more may wait, this is answered at once.
    if (timeoutMs > 0 && process.outcome === undefined && !this.crowded)
      await this.parkFor(process, () => process.outcome, { timeoutMs, signal });
    return { process: process.info(), attached };
  }

  async list(owner: Owner, input: Params<'list'>): Promise<Results['list']> {
    const { found, total } = this.house.registry.list(owner, this.params('list', input));
    return { processes: found.map((process) => process.info()), total };
  }

  async get(owner: Owner, input: Params<'get'>): Promise<Results['get']> {
    return this.find(owner, this.params('get', input)).info();
  }

  async read(owner: Owner, input: Params<'read'>, signal?: AbortSignal): Promise<Results['read']> {
    return (await this.grown(owner, input, signal)).page();
  }

  /** The first half of `read`: there is a page, or the time is over. Whoever asks for it then gets it from the answer. */
  async grown(owner: Owner, input: Params<'read'>, signal?: AbortSignal): Promise<GrownProcess> {
    const params = this.params('read', input);
    const { id, waitMs, afterCount } = params;
    if (waitMs !== undefined) await this.house.startsUnderWay(owner, [id]);
    const process = this.find(owner, params);
    const counted = params.asides === true || afterCount !== undefined;
    const recalling = counted ? process.asides.recall(process.journal) : undefined;
    if (recalling) await recalling;
    const after = afterCount === undefined ? (params.after ?? 0) : process.asides.seqOf(afterCount);
    if (waitMs !== undefined && process.live && process.journal.visibleSeq <= after) {
      const waits = [{ process, for: [{ kind: 'growth', after } as const] }];
      await this.park(() =>
        waitFor({ waits, mode: 'first', timeoutMs: waitMs, signal }, this.conditionTools),
      );
    }
    return new GrownProcess(process, { ...params, after });
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

  async text(owner: Owner, input: Params<'text'>, signal?: AbortSignal): Promise<Results['text']> {
    const params = this.params('text', input);
    const { waitMs, drainMs = 0 } = params;
    const process = this.find(owner, params);
    if (waitMs !== undefined && process.outcome === undefined)
      await this.parkFor(process, () => process.outcome, { timeoutMs: waitMs, signal });
    if (process.state === 'exited' && drainMs > 0) {
      const passedMs = this.house.clock.wallMs() - (process.exitedAtMs ?? 0);
      const timeoutMs = Math.ceil(Math.min(drainMs, drainMs - passedMs));
      if (timeoutMs > 0)
        await this.parkFor(process, () => process.closedAtMs, { timeoutMs, signal });
    }
    // Before the output, so that a process said to have ended has all its output here.
    const info = process.info();
    const { text, truncated } = await this.texts.of(process.journal, params);
    return { text, process: info, ...(truncated && { truncated }) };
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
    const { id, ...params } = this.params('write', input);
    return writeInput(this.find(owner, { id }), params);
  }

  async resize(owner: Owner, input: Params<'resize'>): Promise<Results['resize']> {
    const params = this.params('resize', input);
    const process = this.find(owner, params);
    return recorded(process, process.resize(params.size));
  }

  async run(owner: Owner, input: Params<'run'>, signal?: AbortSignal): Promise<Results['run']> {
    const params = this.params('run', input);
    const { terminal } = this.find(owner, params);
    return this.park(() => terminal.run(params, signal));
  }

  async runWait(
    owner: Owner,
    input: Params<'runWait'>,
    signal?: AbortSignal,
  ): Promise<Results['runWait']> {
    const params = this.params('runWait', input);
    const { terminal } = this.find(owner, params);
    return this.park(() => terminal.runWait(params, signal));
  }

  async mark(owner: Owner, input: Params<'mark'>): Promise<Results['mark']> {
    const params = this.params('mark', input);
    const process = this.find(owner, params);
    return recorded(process, process.terminal.mark(params.label));
  }

  async keyboard(owner: Owner, input: Params<'keyboard'>): Promise<Results['keyboard']> {
    const { holder, forMs, ...target } = this.params('keyboard', input);
    this.find(owner, target).terminal.keyboard.take(holder, forMs);
    return {};
  }

  async signal(owner: Owner, input: Params<'signal'>): Promise<Results['signal']> {
    const { signal, graceMs, by = owner, reach, ...target } = this.params('signal', input);
    return this.house.signal(this.find(owner, target), { signal, by, graceMs, reach });
  }

  async wait(owner: Owner, input: Params<'wait'>, signal?: AbortSignal): Promise<Results['wait']> {
    const { waits, mode = 'first', timeoutMs } = this.params('wait', input);
    await this.house.startsUnderWay(
      owner,
      waits.map(({ id }) => id),
    );
    const found = waits.map((wait) => ({
      process: this.house.registry.find(owner, wait.id),
      for: wait.for,
    }));
    return this.park(() => waitFor({ waits: found, mode, timeoutMs, signal }, this.conditionTools));
  }

  async ports(owner: Owner, input: Params<'ports'>): Promise<Results['ports']> {
    return { ports: this.house.kin.ports(this.find(owner, this.params('ports', input))) };
  }

  async remove(owner: Owner, input: Params<'remove'>): Promise<Results['remove']> {
    const { force = false, ...target } = this.params('remove', input);
    const process = this.find(owner, target);
    if (process.live && !force) {
      throw new HoldfastError('still_running', `Process ${process.facts.id} has not ended.`);
    }
    if (!process.settled) await this.house.end(process, `removed by ${owner}`);
    process.abandon();
    this.house.registry.forget(process);
    return {};
  }

  async completions(
    owner: Owner,
    input: Params<'completions'>,
    signal?: AbortSignal,
  ): Promise<Results['completions']> {
    const wanted = this.params('completions', input);
    const { subscriber = 'default', after = 0, limit = 100, waitMs = 0 } = wanted;
    const { completions } = this.house;
    const check = (): Results['completions']['completions'] | undefined => {
      const pending = completions.pending({ owner, subscriber, after, limit });
      return pending.length > 0 ? pending : undefined;
    };
    const subscribe = (wake: () => void): (() => void) => completions.onNew(wake);
    const { clock } = this.house;
    const found = await this.park(() =>
      waitUntil(check, { clock, timeoutMs: waitMs, signal, subscribe }),
    );
    return { completions: found ?? [] };
  }

  async acknowledge(owner: Owner, input: Params<'acknowledge'>): Promise<Results['acknowledge']> {
    const { subscriber = 'default', numbers } = this.params('acknowledge', input);
    return { acknowledged: this.house.completions.acknowledge(owner, subscriber, numbers) };
  }

  async lease(owner: Owner, input: Params<'lease'>): Promise<Results['lease']> {
    return { held: this.house.leases.set(owner, this.params('lease', input)) };
  }

  async owners(owner: Owner): Promise<Results['owners']> {
    return { owners: this.house.registry.owners(owner) };
  }

  async limits(): Promise<Results['limits']> {
    return this.house.limits;
  }

  async health(): Promise<Results['health']> {
    const processes = Array.from(this.house.registry.all());
    return {
      version: this.version,
      pid: process.pid,
      uptimeMs: Math.round((this.house.clock.nowUs() - this.startedUs) / 1000),
      live: this.house.registry.size - this.house.registry.endedCount,
      ended: this.house.registry.endedCount,
      parkedWaits: this.parkedWaits,
      journalBytes: this.house.usage.bytes,
      rssBytes: process.memoryUsage.rss(),
      degraded: processes.filter(
        ({ journal }) => journal instanceof Journal && journal.degraded !== undefined,
      ).length,
      children: this.house.children.kind,
    };
  }

  /** Ends everything that was started and leaves no descendant. */
  close(): Promise<void> {
    this.closing ??= this.house.close().then(() => this.matcher.close());
    return this.closing;
  }

  private params<Name extends OperationName>(name: Name, input: unknown): Params<Name> {
    if (this.closing) throw new HoldfastError('host_closed', 'The host has been closed.');
    return parseParams(name, input);
  }

  private find(owner: Owner, target: { readonly id: string }): HeldProcess {
    return this.house.registry.find(owner, target.id);
  }

  /** Until the process has what is asked of it. */
  private parkFor(
    process: HeldProcess,
    has: () => unknown,
    { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal | undefined },
  ): Promise<unknown> {
    const { clock } = this.house;
    const subscribe = (wake: () => void): (() => void) => process.onChange(wake);
    return this.park(() => waitUntil(has, { clock, timeoutMs, signal, subscribe }));
  }

  private get crowded(): boolean {
    return this.parkedWaits >= this.house.limits.parkedWaits;
  }

  /** Not async, and both its ends made once: a suspended function costs a parked wait half a kilobyte. */
  private park<T>(wait: () => Promise<T>): Promise<T> {
    if (this.crowded) {
      const problem = `${this.parkedWaits} callers are waiting, which is the limit "parkedWaits".`;
      return Promise.reject(new HoldfastError('limit_reached', problem));
    }
    this.parkedWaits += 1;
    return wait().then(this.waited, this.waitFailed) as Promise<T>;
  }

  private readonly waited = (value: unknown): unknown => {
    this.parkedWaits -= 1;
    return value;
  };

  private readonly waitFailed = (error: unknown): never => {
    this.parkedWaits -= 1;
    throw error;
  };
}

export type { HostOptions };
