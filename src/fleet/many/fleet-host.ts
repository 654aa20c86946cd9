// Many hosts as one: HostApi over lanes. What names a process goes to its host; lists and feeds come from all of them.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { randomId } from '../../base/ids.ts';
import { VERSION } from '../../base/version.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import {
  EVERYONE,
  type Health,
  type HostApi,
  type Owner,
  type OwnerUse,
  type Results,
} from '../../protocol/host-api.ts';
import type { AllMeans, MeansName } from '../../protocol/confinement/confinement.ts';
import type { Limits } from '../../protocol/limits.ts';
import type { OperationName, Params } from '../../protocol/operations.ts';
import { residentBytes } from '../../system/resources.ts';
import { Claims } from '../ledger/claims.ts';
import { LedgerFeed } from '../ledger/ledger-feed.ts';
import type { LedgerTail } from '../ledger/ledger-tail.ts';
import type { ArchiveReader } from '../archive/archive-reader.ts';
import { readArchived, removeWithCopy } from '../archive/read-archived.ts';
import { FleetChanges } from './fleet-changes.ts';
import { FleetFeed } from './fleet-feed.ts';
import { listFleet } from './fleet-list.ts';
import { waitInFleet } from './fleet-waits.ts';
import { ProcessFinder, type FinderDeps } from './process-finder.ts';
import { ReadAhead } from './read-ahead.ts';
import { needAll, scatter } from './scatter.ts';
import { Starter, type StarterDeps } from './starter.ts';

export interface FleetHostDeps extends FinderDeps, Pick<StarterDeps, 'ceilingOf'> {
  /** Ended processes whose hosts are gone. */
  readonly archive?: ArchiveReader | undefined;
  /** Why no host can be asked. */
  readonly problem: () => HoldfastError | undefined;
  readonly close: () => Promise<void>;
  readonly ledger: LedgerTail;
}

/** Operations with the id of a process. */
type Named = {
  [Name in OperationName]: Params<Name> extends { readonly id: string } ? Name : never;
}[OperationName];

/** The largest answer to a read that waits: it has no credit. */
const WAITING_READ_BYTES = 32 * 1024;
/** A text that waits longer for output after the exit waits without credit. */
const SHORT_DRAIN_MS = 1000;

export class FleetHost implements HostApi {
  private readonly deps: FleetHostDeps;
  private readonly finder: ProcessFinder;
  private readonly starter: Starter;
  /** Without a ledger. */
  private readonly feed: FleetFeed;
  private readonly ledgerFeed: LedgerFeed;
  private readonly listChanges: FleetChanges;
  private readonly startedUs: number;
  private readonly readAhead: ReadAhead;

  constructor(deps: FleetHostDeps) {
    this.deps = deps;
    const claims = new Claims(deps.ledger, deps.clock);
    this.finder = new ProcessFinder({ ...deps, claims });
    this.starter = new Starter({ ...deps, finder: this.finder, claims });
    this.feed = new FleetFeed(deps);
    this.ledgerFeed = new LedgerFeed(deps.ledger, deps.clock);
    this.listChanges = new FleetChanges(deps);
    this.startedUs = deps.clock.nowUs();
    this.readAhead = new ReadAhead(deps.clock);
  }

  async start(owner: Owner, spec: Params<'start'>, signal?: CancelSignal) {
    this.check();
    return this.starter.start(owner, spec, signal);
  }

  /** The host that a process with these labels would be placed on. */
  async place(owner: Owner, labels: Readonly<Record<string, string>>): Promise<string> {
    this.check();
    return this.starter.choose(owner, labels);
  }

  async list(owner: Owner, params: Params<'list'>, signal?: CancelSignal) {
    this.check();
    return listFleet(this.deps, owner, params, signal);
  }

  async changes(owner: Owner, params: Params<'changes'>, signal?: CancelSignal) {
    this.check();
    return this.listChanges.changes(owner, params, signal);
  }

  async wait(owner: Owner, params: Params<'wait'>, signal?: CancelSignal) {
    this.check();
    return waitInFleet({ ...this.deps, finder: this.finder }, owner, params, signal);
  }

  get(owner: Owner, params: Params<'get'>, signal?: CancelSignal) {
    return this.look('get', owner, params, { signal });
  }

  async read(owner: Owner, params: Params<'read'>, signal?: CancelSignal) {
    const { waitMs = 0, maxBytes = WAITING_READ_BYTES } = params;
    const now = await this.look('read', owner, { ...params, waitMs: 0 }, { signal });
    if (waitMs === 0 || now.records.length > 0 || now.end || now.missed) return now;
    now.release?.();
    const small = { ...params, maxBytes: Math.min(maxBytes, WAITING_READ_BYTES) };
    return this.look('read', owner, small, { signal, free: true });
  }

  range(owner: Owner, params: Params<'range'>, signal?: CancelSignal): Promise<Results['range']> {
    // What is read ahead is not this caller's alone.
    const ahead = (wanted: Params<'range'>): Promise<Results['range']> =>
      this.look('range', owner, wanted, wanted === params ? { signal } : {});
    return this.readAhead.range(owner, params, ahead);
  }

  async text(owner: Owner, params: Params<'text'>, signal?: CancelSignal) {
    const { waitMs = 0, ...rest } = params;
    const { id, drainMs = 0 } = rest;
    const wait = (kind: 'exit' | 'closed', timeoutMs: number): Promise<unknown> =>
      this.wait(owner, { waits: [{ id, for: [{ kind }] }], timeoutMs }, signal);
    if (waitMs > 0) await wait('exit', waitMs);
    if (drainMs > SHORT_DRAIN_MS && (await this.get(owner, { id }, signal)).state === 'exited')
      await wait('closed', drainMs);
    return this.look('text', owner, rest, { signal });
  }

  search(owner: Owner, params: Params<'search'>, signal?: CancelSignal) {
    return this.look('search', owner, params, { signal });
  }

  ports(owner: Owner, params: Params<'ports'>, signal?: CancelSignal) {
    return this.look('ports', owner, params, { signal });
  }

  tree(owner: Owner, params: Params<'tree'>, signal?: CancelSignal) {
    return this.look('tree', owner, params, { signal });
  }

  write(owner: Owner, params: Params<'write'>, signal?: CancelSignal) {
    return this.change('write', owner, params, signal);
  }

  resize(owner: Owner, params: Params<'resize'>, signal?: CancelSignal) {
    return this.change('resize', owner, params, signal);
  }

  signal(owner: Owner, params: Params<'signal'>, signal?: CancelSignal) {
    const { by = owner } = params;
    return this.change('signal', owner, { ...params, by }, signal);
  }

  run(owner: Owner, params: Params<'run'>, signal?: CancelSignal) {
    const { run = randomId() } = params;
    return this.change('run', owner, { ...params, run }, signal);
  }

  runWait(owner: Owner, params: Params<'runWait'>, signal?: CancelSignal) {
    return this.look('runWait', owner, params, { signal });
  }

  mark(owner: Owner, params: Params<'mark'>, signal?: CancelSignal) {
    return this.change('mark', owner, params, signal);
  }

  keyboard(owner: Owner, params: Params<'keyboard'>, signal?: CancelSignal) {
    return this.change('keyboard', owner, params, signal);
  }

  /** Of one owner, also for everyone: another may have an archived process of this id. */
  async remove(owner: Owner, params: Params<'remove'>, signal?: CancelSignal) {
    const acting = await this.actingOwner(owner, params.id, signal);
    const removing = this.look('remove', acting, params, { signal });
    await removeWithCopy(this.deps.archive, acting, params.id, removing);
    this.finder.forget(acting, params.id);
    return {};
  }

  async completions(owner: Owner, params: Params<'completions'>, signal?: CancelSignal) {
    return (await this.feedNow()).completions(owner, params, signal);
  }

  async acknowledge(owner: Owner, params: Params<'acknowledge'>) {
    return (await this.feedNow()).acknowledge(owner, params);
  }

  /** The ledger waits for JetStream by itself. */
  private async feedNow(): Promise<FleetFeed | LedgerFeed> {
    const { ledger } = this.deps;
    if (ledger.isKnown && ledger.state !== 'none') return this.ledgerFeed;
    this.check();
    return (await ledger.isThere()) ? this.ledgerFeed : this.feed;
  }

  /** Of the hosts that answer. */
  async attention(owner: Owner, params: Params<'attention'>, signal?: CancelSignal) {
    const ask = (host: string, stop: CancelSignal) =>
      this.deps.asker.ask(host, { op: 'attention', owner, params }, { signal: stop });
    return { needs: (await this.everywhere(ask, signal)).flatMap(({ needs }) => needs) };
  }

  dismiss(owner: Owner, params: Params<'dismiss'>, signal?: CancelSignal) {
    return this.change('dismiss', owner, params, signal);
  }

  /** Held at every host that can be reached: the processes of an owner may be anywhere. */
  async lease(owner: Owner, params: Params<'lease'>, signal?: CancelSignal) {
    let unknown: HoldfastError | undefined;
    const answers = await this.everywhere(
      (host, stop) =>
        this.deps.asker
          .ask(host, { op: 'lease', owner, params }, { signal: stop })
          .catch((error: unknown) => {
            if (!(error instanceof HoldfastError) || error.code !== 'not_found') throw error;
            unknown = error;
            return undefined;
          }),
      signal,
    );
    const held = answers.filter((answer) => answer !== undefined);
    if (held.length === 0 && unknown) throw unknown;
    return { held: held.some((answer) => answer.held) };
  }

  async holdLease(owner: Owner, params: Params<'holdLease'>, signal?: CancelSignal) {
    const ask = (host: string, stop: CancelSignal) =>
      this.deps.asker.ask(host, { op: 'holdLease', owner, params }, { signal: stop });
    await this.everywhere(ask, signal);
    return {};
  }

  async owners(owner: Owner, _params: object, signal?: CancelSignal) {
    const ask = (host: string, stop: CancelSignal) =>
      this.deps.asker.ask(host, { op: 'owners', owner, params: {} }, { signal: stop });
    const uses = new Map<Owner, OwnerUse>();
    for (const { owners } of await this.everywhere(ask, signal))
      for (const use of owners) {
        const { live, ended, bytes } = uses.get(use.owner) ?? { live: 0, ended: 0, bytes: 0 };
        uses.set(use.owner, {
          owner: use.owner,
          live: live + use.live,
          ended: ended + use.ended,
          bytes: bytes + use.bytes,
        });
      }
    return { owners: [...uses.values()].sort((a, b) => (a.owner < b.owner ? -1 : 1)) };
  }

  /** Of each means the weakest at any host: a start may go to any of them. */
  async enforcement(
    owner: Owner,
    params: Params<'enforcement'>,
    signal?: CancelSignal,
  ): Promise<AllMeans> {
    const ask = (host: string, stop: CancelSignal) =>
      this.deps.asker.ask(host, { op: 'enforcement', owner, params }, { signal: stop });
    const [first, ...others] = await this.everywhere(ask, signal);
    if (!first) throw new HoldfastError('no_host', 'No host answers.');
    return others.reduce(weakest, first);
  }

  /** Of each limit the smallest at any host. */
  async limits(owner: Owner, _params: object, signal?: CancelSignal): Promise<Limits> {
    const ask = (host: string, stop: CancelSignal) =>
      this.deps.asker.ask(host, { op: 'limits', owner, params: {} }, { signal: stop });
    const [first, ...others] = await this.everywhere(ask, signal);
    if (!first) throw new HoldfastError('no_host', 'No host answers.');
    const names = Object.keys(first) as (keyof Limits)[];
    const least = (name: keyof Limits): number =>
      Math.min(first[name], ...others.map((each) => each[name]));
    return Object.fromEntries(names.map((name) => [name, least(name)])) as Limits;
  }

  /** The counts of all hosts that answer, and the memory of this gateway. */
  async health(owner: Owner, _params: object, signal?: CancelSignal): Promise<Health> {
    const ask = (host: string, stop: CancelSignal) =>
      this.deps.asker.ask(host, { op: 'health', owner, params: {} }, { signal: stop });
    const all = await this.everywhere(ask, signal);
    const total = (of: (health: Health) => number): number =>
      all.reduce((count, each) => count + of(each), 0);
    return {
      version: VERSION,
      pid: process.pid,
      uptimeMs: Math.round((this.deps.clock.nowUs() - this.startedUs) / 1000),
      live: total(({ live }) => live),
      ended: total(({ ended }) => ended),
      parkedWaits: total(({ parkedWaits }) => parkedWaits),
      journalBytes: total(({ journalBytes }) => journalBytes),
      rssBytes: residentBytes(),
      degraded: total(({ degraded }) => degraded),
      children: 'posix',
    };
  }

  close(): Promise<void> {
    return this.deps.close();
  }

  private async everywhere<T>(
    ask: (host: string, signal: CancelSignal) => Promise<T>,
    signal: CancelSignal | undefined,
  ): Promise<T[]> {
    this.check();
    await this.deps.settled();
    const gathered = await scatter(this.deps, ask, signal);
    // With none at all the reason is said.
    const answers = gathered.answers.length > 0 ? gathered.answers : needAll(gathered);
    return answers.map(({ answer }) => answer);
  }

  /** An operation that changes nothing. */
  private async look<Name extends Named>(
    op: Name,
    owner: Owner,
    params: Params<Name>,
    options: { signal?: CancelSignal | undefined; free?: boolean } = {},
  ): Promise<Results[Name]> {
    this.check();
    const { id } = params as { readonly id: string };
    const ask = (host: string): Promise<Results[Name]> =>
      this.deps.asker.ask(host, { op, owner, params }, options);
    try {
      return await this.finder.at(owner, id, ask, options.signal);
    } catch (error) {
      const { archive } = this.deps;
      return readArchived(archive, { op, owner, id, params, signal: options.signal }, error);
    }
  }

  /** A host changes nothing in the name of all owners: the owner of the process is asked for first. */
  private async change<Name extends Named>(
    op: Name,
    owner: Owner,
    params: Params<Name>,
    signal?: CancelSignal,
  ): Promise<Results[Name]> {
    const { id } = params as { readonly id: string };
    return this.look(op, await this.actingOwner(owner, id, signal), params, { signal });
  }

  private async actingOwner(owner: Owner, id: string, signal?: CancelSignal): Promise<Owner> {
    return owner === EVERYONE ? (await this.get(owner, { id }, signal)).owner : owner;
  }

  private check(): void {
    const problem = this.deps.problem();
    if (problem) throw problem;
  }
}

function weakest(one: AllMeans, other: AllMeans): AllMeans {
  const rank = (by: string): number => (by === 'no' ? 0 : by === 'watch' ? 1 : 2);
  const names = Object.keys(one) as MeansName[];
  const pairs = names.map((name) => {
    const [a, b] = [one[name], other[name]];
    return [name, rank(b.by) < rank(a.by) ? b : a];
  });
  return Object.fromEntries(pairs) as AllMeans;
}
