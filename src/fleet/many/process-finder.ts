// Which host has a process. Ids that a gateway made begin with the tag of their host. Others are looked for at every host;
// where one was found is remembered, and looked for again when it is no longer there.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import type { Clock } from '../../base/clock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { EVERYONE, type Owner } from '../../protocol/host-api.ts';
import type { HostAsker } from '../gateway/host-asker.ts';
import type { HostTable } from '../gateway/host-table.ts';
import type { Claims } from '../ledger/claims.ts';
import { needAll, scatter } from './scatter.ts';

const MOST_REMEMBERED = 10_000;

export interface FinderDeps {
  readonly asker: HostAsker;
  readonly table: HostTable;
  readonly clock: Clock;
  readonly claims?: Claims;
  /** How long an answer about all hosts waits for each of them. */
  readonly listMs?: number | undefined;
  /** Resolves when the hosts have had time to report to a gateway that has just started. */
  readonly settled: () => Promise<void>;
}

/** Which hosts have to answer. */
export type Needed = 'all' | 'some';

export class ProcessFinder {
  private readonly deps: FinderDeps;
  private readonly remembered = new Map<string, string>();
  /** Starts that have not been answered yet, by owner and id. */
  private readonly starting = new Map<string, Promise<string>>();

  constructor(deps: FinderDeps) {
    this.deps = deps;
  }

  /** A call for this id waits meanwhile until its host is chosen. */
  noteStart(owner: Owner, id: string, host: Promise<string>): void {
    const key = keyOf(owner, id);
    this.starting.set(key, host);
    const end = async (): Promise<void> => {
      const [chosen] = await Promise.allSettled([host]);
      if (chosen.status === 'fulfilled') this.remember(owner, id, chosen.value);
      if (this.starting.get(key) === host) this.starting.delete(key);
    };
    void end();
  }

  forget(owner: Owner, id: string): void {
    this.remembered.delete(keyOf(owner, id));
  }

  /** Calls with the host that has the process; once more if the host that was remembered no longer has it. */
  async at<T>(
    owner: Owner,
    id: string,
    act: (host: string) => Promise<T>,
    signal?: CancelSignal,
  ): Promise<T> {
    const known = await this.knownHost(owner, id);
    if (known !== undefined) {
      try {
        return await act(known);
      } catch (error) {
        if (!isNotFound(error) || !this.remembered.delete(keyOf(owner, id))) throw error;
      }
    }
    return act(await this.find(owner, id, signal));
  }

  /** The host that has it. */
  async find(owner: Owner, id: string, signal?: CancelSignal): Promise<string> {
    const known = await this.knownHost(owner, id);
    if (known !== undefined) return known;
    await this.deps.settled();
    return (await this.knownHost(owner, id)) ?? this.lookFor(owner, id, signal);
  }

  /** As `find`, for a start under way: it does not wait for itself. */
  async findForStart(
    owner: Owner,
    id: string,
    needed: Needed,
    signal?: CancelSignal,
  ): Promise<string | undefined> {
    await this.deps.settled();
    const known = this.deps.table.madeFor(id) ?? this.remembered.get(keyOf(owner, id));
    if (known !== undefined) return known;
    try {
      return await this.lookFor(owner, id, signal);
    } catch (error) {
      if (isNotFound(error) || (needed === 'some' && isAway(error))) return undefined;
      throw error;
    }
  }

  private async lookFor(owner: Owner, id: string, signal?: CancelSignal): Promise<string> {
    const { asker } = this.deps;
    const gathered = await scatter(
      this.deps,
      async (host, stop) => {
        try {
          return await asker.ask(host, { op: 'get', owner, params: { id } }, { signal: stop });
        } catch (error) {
          if (isNotFound(error)) return undefined;
          throw error;
        }
      },
      signal,
    );
    const found = gathered.answers.filter(({ answer }) => answer !== undefined);
    const claimed = await this.claimed(owner, id, [
      ...found.map(({ host }) => host),
      ...gathered.missing.keys(),
    ]);
    const away = gathered.missing.get(claimed ?? '');
    if (away) throw away;
    const [first] = found.filter(({ host }) => claimed === undefined || host === claimed);
    if (found.length > 1 && claimed === undefined) {
      const problem = `Process id "${shown(id)}" is used on several hosts: ${found.map(({ host }) => host).join(', ')}.`;
      throw new HoldfastError('ambiguous', problem, { id: shown(id) });
    }
    if (first) {
      this.remember(owner, id, first.host);
      return first.host;
    }
    needAll(gathered);
    throw new HoldfastError('not_found', `Process "${shown(id)}" not found.`, { id: shown(id) });
  }

  /** The one of these hosts that the id was claimed for: what others say of it does not count. */
  private async claimed(
    owner: Owner,
    id: string,
    hosts: readonly string[],
  ): Promise<string | undefined> {
    if (hosts.length < 2 || owner === EVERYONE) return undefined;
    const host = await this.deps.claims?.known(owner, { kind: 'id', text: id });
    return host !== undefined && hosts.includes(host) ? host : undefined;
  }

  /** Where the process with a key, or of a workspace, is. Undefined if nowhere; throws if a needed host is away. */
  async findBy(
    owner: Owner,
    filter: { readonly key: string } | { readonly label: string },
    needed: Needed,
    signal?: CancelSignal,
  ): Promise<string | undefined> {
    await this.deps.settled();
    const { asker } = this.deps;
    const params = { ...filter, limit: 1 };
    const gathered = await scatter(
      this.deps,
      (host, stop) => asker.ask(host, { op: 'list', owner, params }, { signal: stop }),
      signal,
    );
    const newest = gathered.answers
      .flatMap(({ host, answer }) => answer.processes.map((process) => ({ host, process })))
      .sort((a, b) => b.process.startedAtMs - a.process.startedAtMs)[0];
    if (!newest && needed === 'all') needAll(gathered);
    return newest?.host;
  }

  private async knownHost(owner: Owner, id: string): Promise<string | undefined> {
    const key = keyOf(owner, id);
    const starting = this.starting.get(key);
    if (starting) return starting;
    return this.deps.table.madeFor(id) ?? this.remembered.get(key);
  }

  private remember(owner: Owner, id: string, host: string): void {
    // For everyone an id may become ambiguous.
    if (owner === EVERYONE) return;
    const key = keyOf(owner, id);
    this.remembered.delete(key);
    this.remembered.set(key, host);
    const [oldest] = this.remembered.keys();
    if (this.remembered.size > MOST_REMEMBERED && oldest !== undefined)
      this.remembered.delete(oldest);
  }
}

function keyOf(owner: Owner, id: string): string {
  return `${owner.length}:${owner}${id}`;
}

function isAway(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'host_unreachable';
}

function isNotFound(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'not_found';
}

/** An id from outside, safe to repeat in a message. */
function shown(id: string): string {
  const cleaned = id.replace(/[^\x20-\x7e]/g, '?');
  return cleaned.length > 80 ? `${cleaned.slice(0, 77)}...` : cleaned;
}
