// Starts a process on one of the hosts. The id is made here, with the tag of the host, so a start whose answer is lost can be
// made again. A start that may exist already goes to the host that has it.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { Owner, Results } from '../../protocol/host-api.ts';
import type { StartSpec } from '../../protocol/operations.ts';
import { strictest } from '../../host/limits/ceilings.ts';
import type { OwnerPolicy } from '../../protocol/confinement/confinement.ts';
import type { HostAsker } from '../gateway/host-asker.ts';
import type { HostTable } from '../gateway/host-table.ts';
import type { Claims, Name } from '../ledger/claims.ts';
import type { Store } from '../ledger/store.ts';
import { newIdAt } from '../wire/tags.ts';
import { bestHost, fittingHosts, hostByHash, WORKSPACE } from './placement.ts';
import type { Needed, ProcessFinder } from './process-finder.ts';

export interface StarterDeps {
  readonly asker: HostAsker;
  readonly table: HostTable;
  readonly finder: ProcessFinder;
  readonly claims: Claims;
  readonly settled: () => Promise<void>;
  /** What the owner's tokens at this gateway allow: the host that starts a process enforces it. */
  readonly ceilingOf?: ((owner: Owner) => OwnerPolicy | undefined) | undefined;
}

/** Hosts that are tried when one is full. */
const MOST_HOSTS = 3;

export class Starter {
  private readonly deps: StarterDeps;
  /** By host: started, and not yet in a beat. */
  private readonly underWay = new Map<string, number>();
  /** By key or workspace of a start under way: the host that it goes to. */
  private readonly placing = new Map<string, Promise<string>>();

  constructor(deps: StarterDeps) {
    this.deps = deps;
  }

  async start(owner: Owner, spec: StartSpec, signal?: CancelSignal): Promise<Results['start']> {
    const names = namesOf(owner, spec);
    if (names.length === 0) return this.startAnywhere(owner, spec, signal);
    const known = names.map((name) => this.placing.get(name)).find((host) => host !== undefined);
    const host = known ?? this.place(owner, spec, signal);
    const own = names.filter((name) => !this.placing.has(name));
    for (const name of own) this.placing.set(name, host);
    if (spec.id !== undefined && own.length > 0) this.deps.finder.noteStart(owner, spec.id, host);
    try {
      return await this.startAt(await host, owner, spec, signal);
    } finally {
      for (const name of own) this.placing.delete(name);
    }
  }

  /** The host for something that is no process of its own. */
  async choose(owner: Owner, labels: Readonly<Record<string, string>>): Promise<string> {
    if (WORKSPACE in labels) return this.place(owner, { labels });
    const hosts = await this.fitting({ labels });
    return (this.best(hosts) as (typeof hosts)[number]).name;
  }

  private best(hosts: Parameters<typeof bestHost>[0]): ReturnType<typeof bestHost> {
    return bestHost(hosts, (name) => this.underWay.get(name) ?? 0);
  }

  /** The host that has what is started again, else one that every gateway chooses. */
  private async place(owner: Owner, spec: StartSpec, signal?: CancelSignal): Promise<string> {
    let store: Store | undefined;
    try {
      store = await this.deps.claims.store();
      if (store) return await this.claimed(store, owner, spec, signal);
    } catch (error) {
      if (error instanceof HoldfastError) throw error;
      return this.placeUnclaimed(owner, spec, error, signal);
    }
    return this.placeUnknown(owner, spec, 'all', signal);
  }

  /** The claim of a key counts more than that of an id, and that more than the place of a workspace. */
  private async claimed(
    store: Store,
    owner: Owner,
    spec: StartSpec,
    signal?: CancelSignal,
  ): Promise<string> {
    const { claims } = this.deps;
    const names = await Promise.all(
      claimsOf(spec).map(async (name) => ({ name, before: await claims.read(store, owner, name) })),
    );
    const known = names.findLastIndex(({ before }) => before.host !== undefined);
    // Who started it through a gateway has claimed it: a host that is away does not stop what nobody has claimed.
    let host = names[known]?.before.host ?? (await this.placeUnknown(owner, spec, 'some', signal));
    for (const [index, { name, before }] of names.entries()) {
      if (before.host !== undefined) continue;
      const winner = await claims.take(store, owner, { name, host, before });
      if (index > known) host = winner;
    }
    return host;
  }

  /** While JetStream does not answer, only what is known to run is started again. */
  private async placeUnclaimed(
    owner: Owner,
    spec: StartSpec,
    why: unknown,
    signal?: CancelSignal,
  ): Promise<string> {
    const host = await this.placeOfKnown(owner, spec, 'all', signal);
    if (host !== undefined) return host;
    const reason = why instanceof Error ? why.message : String(why);
    const problem = `JetStream does not answer (${reason}), so another gateway may start the same now.`;
    throw new HoldfastError('fabric_degraded', problem, { retryAfterMs: 1000 });
  }

  /** `needed`: the hosts that have to answer before it is said to be nowhere. */
  private async placeOfKnown(
    owner: Owner,
    { id, key, labels }: StartSpec,
    needed: Needed,
    signal?: CancelSignal,
  ): Promise<string | undefined> {
    const { finder } = this.deps;
    const workspace = labels?.[WORKSPACE];
    if (key !== undefined) {
      const host = await finder.findBy(owner, { key }, needed, signal);
      if (host !== undefined) return host;
    }
    if (id !== undefined) {
      const host = await finder.findForStart(owner, id, needed, signal);
      if (host !== undefined) return host;
    }
    if (workspace === undefined) return undefined;
    return finder.findBy(owner, { label: `${WORKSPACE}=${workspace}` }, needed, signal);
  }

  private async placeUnknown(
    owner: Owner,
    spec: StartSpec,
    needed: Needed,
    signal?: CancelSignal,
  ): Promise<string> {
    const host = await this.placeOfKnown(owner, spec, needed, signal);
    if (host !== undefined) return host;
    const { id, key, labels } = spec;
    const hosts = await this.fitting(spec);
    const text = JSON.stringify([owner, labels?.[WORKSPACE] ?? key ?? id]);
    return (hostByHash(hosts, text) as (typeof hosts)[number]).name;
  }

  private async startAnywhere(
    owner: Owner,
    spec: StartSpec,
    signal?: CancelSignal,
  ): Promise<Results['start']> {
    const tried = new Set<string>();
    for (;;) {
      const hosts = await this.fitting(spec);
      const untried = hosts.filter(({ name }) => !tried.has(name));
      const host = this.best(untried);
      if (!host) throw new HoldfastError('no_host', 'Every host that fits refused the process.');
      tried.add(host.name);
      const id = newIdAt(host.name);
      try {
        const { process } = await this.startAt(host.name, owner, { ...spec, id }, signal);
        // Nobody else knows the id: the host attached to it because its first answer was lost.
        return { process, attached: false };
      } catch (error) {
        const more = tried.size < MOST_HOSTS && tried.size < hosts.length;
        if (!more || !(error instanceof HoldfastError) || !isFull(error)) throw error;
      }
    }
  }

  /** A gateway that has just started waits for the hosts to report. */
  private async fitting({ labels }: StartSpec): Promise<ReturnType<typeof fittingHosts>> {
    const { table, settled } = this.deps;
    try {
      return fittingHosts(table.all(), labels);
    } catch {
      await settled();
      return fittingHosts(table.all(), labels);
    }
  }

  private async startAt(
    host: string,
    owner: Owner,
    params: StartSpec,
    signal?: CancelSignal,
  ): Promise<Results['start']> {
    this.count(host, 1);
    try {
      const id = params.id ?? newIdAt(host);
      const ceiling = strictest(this.deps.ceilingOf?.(owner), params.ceiling);
      const request = { op: 'start', owner, params: { ...params, id, ceiling } } as const;
      return await this.deps.asker.ask(host, request, { signal });
    } finally {
      this.count(host, -1);
    }
  }

  private count(host: string, by: number): void {
    const count = (this.underWay.get(host) ?? 0) + by;
    if (count > 0) this.underWay.set(host, count);
    else this.underWay.delete(host);
  }
}

/** What makes a start the same start as another one, or keeps it beside others. */
function namesOf(owner: Owner, { id, key, labels }: StartSpec): string[] {
  const workspace = labels?.[WORKSPACE];
  const name = (kind: string, text: string | undefined): string[] =>
    text === undefined ? [] : [JSON.stringify([kind, owner, text])];
  return [...name('key', key), ...name('id', id), ...name(WORKSPACE, workspace)];
}

/** In the order in which they are claimed. */
function claimsOf({ id, key, labels }: StartSpec): Name[] {
  const name = (kind: Name['kind'], text: string | undefined): Name[] =>
    text === undefined ? [] : [{ kind, text }];
  return [...name('place', labels?.[WORKSPACE]), ...name('id', id), ...name('key', key)];
}

/** The host has not started it, and another one may. */
function isFull({ code, details }: HoldfastError): boolean {
  const full = [
    'too_many_processes',
    'too_many_files',
    'no_memory',
    'limit_reached',
    'limit_unenforceable',
    'sandbox_unenforceable',
  ];
  return full.includes(code) || (code === 'host_unreachable' && details['unclear'] !== true);
}
