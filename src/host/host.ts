// The host: every process of one state folder, behind one interface. Each operation finds its process through its owner.

import type { CancelSignal } from '../base/cancel-signal.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { CloseReport, HostApi, Owner, Results } from '../protocol/host-api.ts';
import { parseParams, type OperationName, type Params } from '../protocol/operations.ts';
import { Matcher } from '../journal/search/matcher.ts';
import { extentPage } from '../journal/read/extent.ts';
import { readPage } from '../journal/read/reader.ts';
import { Needs } from './attention/needs.ts';
import { waitUntil } from './wait/wait-until.ts';
import { conditionTools, type ConditionTools } from './wait/conditions.ts';
import type { HeldProcess } from './process/held-process.ts';
import { healthOf } from './observe/health.ts';
import type { HostOptions } from './host-options.ts';
import type { RunResult } from '../protocol/run.ts';
import type { Terminal } from './terminal/terminal.ts';
import { ProcessLifecycle } from './lifecycle.ts';
import { LocalPrograms } from './local-programs.ts';
import {
  readBytes,
  readEvents,
  stillKnown,
  whileKnown,
  type ExtentPage,
  type MakeLarge,
  type ReadDeps,
} from './process/read-events.ts';
import { waitForCompletions } from './completions/completions-operation.ts';
import { waitForChanges } from './changes-operation.ts';
import { listRows } from './list-rows.ts';
import { treeOf } from './descendants/tree-members.ts';
import { ParkedWaits } from './wait/parked-waits.ts';
import { useFastLibraries } from '../system/fast-libraries.ts';
import { removeProcess } from './removal.ts';
import { byteSource, SharedTexts } from './process/views.ts';
import { settle, waitFor } from './wait/wait-operation.ts';
import { recorded, writeInput } from './process/write-input.ts';

const makeNow: MakeLarge = (make) => make();

export class Host implements HostApi {
  readonly programs: LocalPrograms;
  private readonly lifecycle: ProcessLifecycle;
  private readonly version: string;
  private readonly startedUs: number;
  private readonly matcher: Matcher;
  private readonly conditionTools: ConditionTools;
  private readonly texts = new SharedTexts();
  private readonly needs = new Needs();
  private readonly parked: ParkedWaits;
  private readonly reading: ReadDeps;
  private closing: Promise<CloseReport> | undefined;
  /** Which fast paths are on, for the log. */
  fastPaths: readonly string[] = [];

  /** Opens the folder and recovers the processes of an earlier host. */
  static async open(options: HostOptions): Promise<Host> {
    const host = new Host(options);
    const poll = await host.lifecycle.children.checkPoll();
    await host.lifecycle.control.check();
    host.fastPaths = [...useFastLibraries(), `output by ${poll}`];
    await host.lifecycle.recover();
    return host;
  }

  private constructor(options: HostOptions) {
    const lifecycle = (this.lifecycle = new ProcessLifecycle(options));
    const { clock } = lifecycle;
    this.programs = new LocalPrograms(lifecycle);
    this.version = options.version ?? 'unknown';
    this.startedUs = clock.nowUs();
    this.parked = new ParkedWaits(lifecycle.limits.parkedWaits);
    this.matcher = new Matcher({ clock });
    this.conditionTools = conditionTools(lifecycle, this.matcher);
    this.reading = { lifecycle, parked: this.parked, conditionTools: this.conditionTools };
  }

  async start(
    owner: Owner,
    input: Params<'start'>,
    signal?: CancelSignal,
  ): Promise<Results['start']> {
    const spec = this.params('start', input);
    const begunUs = this.lifecycle.clock.nowUs();
    const { process, attached } = await this.lifecycle.start(owner, spec);
    // From here on the next keeper would find it too.
    await recorded(process, 1);
    if (!attached) this.lifecycle.measures.started(begunUs);
    const { waitMs = 0, settleMs = 0 } = spec;
    // A repeated start, for example after a lost connection, has no more time than the first one.
    const timeoutMs = Math.ceil(attached ? waitMs - process.info().durationMs : waitMs);
    // The process runs: if no more waits are admitted, answer now instead of failing.
    if (timeoutMs > 0 && process.outcome === undefined && this.parked.admits(owner))
      await this.parkFor(owner, process, () => process.outcome, { timeoutMs, signal });
    if (waitMs > 0 && settleMs > 0 && process.outcome && this.parked.admits(owner))
      await this.parked.park(owner, () => settle(process, settleMs, this.conditionTools, signal));
    return { process: process.info(), attached };
  }

  async list(owner: Owner, input: Params<'list'>): Promise<Results['list']> {
    const filter = this.params('list', input);
    const { found, total } = this.lifecycle.registry.list(owner, filter);
    const rows = listRows(found);
    const last = found[rows.length - 1];
    const more = filter.before !== undefined && rows.length < total && last !== undefined;
    return { processes: rows, total, ...(more && { next: last.number }) };
  }

  async changes(
    owner: Owner,
    input: Params<'changes'>,
    signal?: CancelSignal,
  ): Promise<Results['changes']> {
    const query = { owner, params: this.params('changes', input), signal };
    return this.parked.park(owner, () => waitForChanges(this.lifecycle, query));
  }

  async get(owner: Owner, input: Params<'get'>): Promise<Results['get']> {
    return this.find(owner, this.params('get', input)).info();
  }

  async read(
    owner: Owner,
    input: Params<'read'>,
    signal?: CancelSignal,
    makeLarge: MakeLarge = makeNow,
  ): Promise<Results['read']> {
    const params = this.params('read', input);
    return readEvents(this.reading, owner, params, { read: readPage, signal, makeLarge });
  }

  /** As `read`; a large page is answered with its extent in a file, which the caller reads itself. */
  async readExtent(
    owner: Owner,
    input: Params<'read'>,
    signal: CancelSignal,
    makeLarge: MakeLarge,
  ): Promise<Results['read'] | ExtentPage> {
    const params = this.params('read', input);
    return readEvents(this.reading, owner, params, { read: extentPage, signal, makeLarge });
  }

  async range(owner: Owner, input: Params<'range'>): Promise<Results['range']> {
    const params = this.params('range', input);
    return readBytes(this.find(owner, params), params);
  }

  async text(
    owner: Owner,
    input: Params<'text'>,
    signal?: CancelSignal,
    makeLarge: MakeLarge = makeNow,
  ): Promise<Results['text']> {
    const params = this.params('text', input);
    const { waitMs, drainMs = 0 } = params;
    const process = this.find(owner, params);
    if (waitMs !== undefined && process.outcome === undefined)
      await this.parkFor(owner, process, () => process.outcome, { timeoutMs: waitMs, signal });
    const timeoutMs = Math.ceil(drainMs - process.sinceExitMs());
    if (process.state === 'exited' && timeoutMs > 0)
      await this.parkFor(owner, process, () => process.closedAtMs, { timeoutMs, signal });
    // Taken before the output is read, so that the text of an exited process is complete.
    const info = process.info();
    const { text, truncated } = await makeLarge(() =>
      whileKnown(process, this.texts.of(process.journal, params)),
    );
    return { text, process: info, ...(truncated && { truncated }) };
  }

  async search(
    owner: Owner,
    input: Params<'search'>,
    signal?: CancelSignal,
  ): Promise<Results['search']> {
    const { id, kind = 'regex', ...query } = this.params('search', input);
    const process = this.find(owner, { id });
    const source = byteSource(process.journal);
    const caller = { owner, signal, bounded: true };
    return whileKnown(process, this.matcher.search(source, { kind, ...query }, caller));
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

  async run(owner: Owner, input: Params<'run'>, signal?: CancelSignal): Promise<Results['run']> {
    const params = this.params('run', input);
    return this.parkRun(owner, params, (terminal) => terminal.run(params, signal));
  }

  async runWait(
    owner: Owner,
    input: Params<'runWait'>,
    signal?: CancelSignal,
  ): Promise<Results['runWait']> {
    const params = this.params('runWait', input);
    return this.parkRun(owner, params, (terminal) => terminal.runWait(params, signal));
  }

  async mark(owner: Owner, input: Params<'mark'>): Promise<Results['mark']> {
    const params = this.params('mark', input);
    const process = this.find(owner, params);
    return recorded(process, process.terminal.mark(params.label));
  }

  async keyboard(owner: Owner, input: Params<'keyboard'>): Promise<Results['keyboard']> {
    const { holder, forMs, steal, answers, id } = this.params('keyboard', input);
    this.find(owner, { id }).terminal.holdKeyboard(holder, forMs, { steal, answers });
    return {};
  }

  async signal(owner: Owner, input: Params<'signal'>): Promise<Results['signal']> {
    const { signal, graceMs, by = owner, reach, ...target } = this.params('signal', input);
    return this.lifecycle.signal(this.find(owner, target), { signal, by, graceMs, reach });
  }

  async wait(owner: Owner, input: Params<'wait'>, signal?: CancelSignal): Promise<Results['wait']> {
    const { waits, mode = 'first', timeoutMs } = this.params('wait', input);
    const ids = waits.map(({ id }) => id);
    await this.lifecycle.startsUnderWay(owner, ids);
    const found = waits.map((wait) => ({ process: this.find(owner, wait), for: wait.for }));
    return this.parked.park(owner, () =>
      waitFor({ waits: found, mode, timeoutMs, signal }, this.conditionTools),
    );
  }

  async ports(owner: Owner, input: Params<'ports'>): Promise<Results['ports']> {
    return { ports: this.lifecycle.tracker.ports(this.find(owner, this.params('ports', input))) };
  }

  async tree(owner: Owner, input: Params<'tree'>): Promise<Results['tree']> {
    return treeOf(this.lifecycle.tracker.members(this.find(owner, this.params('tree', input))));
  }

  async attention(owner: Owner, input: Params<'attention'>): Promise<Results['attention']> {
    const { found } = this.lifecycle.registry.list(owner, { state: 'running' });
    return { needs: await this.needs.find(found, this.params('attention', input)) };
  }

  async dismiss(owner: Owner, input: Params<'dismiss'>): Promise<Results['dismiss']> {
    return this.needs.dismiss(this.find(owner, this.params('dismiss', input)));
  }

  async remove(owner: Owner, input: Params<'remove'>): Promise<Results['remove']> {
    const { force = false, ...target } = this.params('remove', input);
    const process = this.find(owner, target);
    if (process.live && !force)
      throw new HoldfastError('still_running', `Process ${process.facts.id} has not ended.`);
    await removeProcess(this.lifecycle, process, `removed by ${owner}`);
    return {};
  }

  async completions(
    owner: Owner,
    input: Params<'completions'>,
    signal?: CancelSignal,
  ): Promise<Results['completions']> {
    const query = { owner, params: this.params('completions', input), signal };
    return this.parked.park(owner, () => waitForCompletions(this.lifecycle, query));
  }

  async acknowledge(owner: Owner, input: Params<'acknowledge'>): Promise<Results['acknowledge']> {
    const { subscriber = 'default', numbers } = this.params('acknowledge', input);
    const acknowledged = this.lifecycle.completions.acknowledge(owner, subscriber, numbers);
    await this.lifecycle.completions.stored();
    return { acknowledged };
  }

  async lease(owner: Owner, input: Params<'lease'>): Promise<Results['lease']> {
    return { held: this.lifecycle.leases.set(owner, this.params('lease', input)) };
  }

  async holdLease(owner: Owner, input: Params<'holdLease'>): Promise<Results['holdLease']> {
    this.lifecycle.leases.hold(owner, this.params('holdLease', input));
    return {};
  }

  async owners(owner: Owner): Promise<Results['owners']> {
    return { owners: this.lifecycle.registry.owners(owner) };
  }

  async limits(): Promise<Results['limits']> {
    return this.lifecycle.limits;
  }

  async enforcement(owner: Owner, input: Params<'enforcement'>): Promise<Results['enforcement']> {
    return this.lifecycle.control.means(owner, this.params('enforcement', input).total);
  }

  async health(): Promise<Results['health']> {
    const { version, startedUs } = this;
    return healthOf(this.lifecycle, { version, startedUs, parkedWaits: this.parked.count });
  }

  /** Whether no process and no descendant is alive: closing would end nothing. */
  async isIdle(): Promise<boolean> {
    await this.lifecycle.tracker.checkUnreported();
    return [...this.lifecycle.registry.all()].every(({ live, settled }) => !live && settled);
  }

  /** Ends every process with all descendants. Always completes. */
  async close(): Promise<void> {
    await this.shutDown();
  }

  /** As `close`, and reports what failed. Never rejects; later callers get the same report. */
  shutDown(graceMs?: number): Promise<CloseReport> {
    return (this.closing ??= this.lifecycle.close(this.matcher, graceMs));
  }

  private params<Name extends OperationName>(name: Name, input: unknown): Params<Name> {
    if (this.closing) throw new HoldfastError('host_closed', 'The host has been closed.');
    return parseParams(name, input);
  }

  private find(owner: Owner, target: { readonly id: string }): HeldProcess {
    return this.lifecycle.registry.find(owner, target.id);
  }

  private parkRun(
    owner: Owner,
    target: { readonly id: string },
    run: (terminal: Terminal) => Promise<RunResult>,
  ): Promise<RunResult> {
    const process = this.find(owner, target);
    const { terminal } = process;
    return whileKnown(
      process,
      this.parked.park(owner, () => run(terminal)),
    );
  }

  /** Waits until `has` returns something. */
  private parkFor(
    owner: Owner,
    process: HeldProcess,
    has: () => unknown,
    { timeoutMs, signal }: { timeoutMs: number; signal: CancelSignal | undefined },
  ): Promise<unknown> {
    const { clock } = this.lifecycle;
    const subscribe = (wake: () => void): (() => void) => process.onChange(wake);
    const check = (): unknown => has() ?? stillKnown(process);
    return this.parked.park(owner, () => waitUntil(check, { clock, timeoutMs, signal, subscribe }));
  }
}

export type { HostOptions, MakeLarge };
