// Changes of the list of all hosts, for a client that keeps a copy of it. How far a client has read each host is kept here
// under the epoch that it names; an epoch that is not known here begins the list anew.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { randomId } from '../../base/ids.ts';
import type { Owner, Results } from '../../protocol/host-api.ts';
import type { Params } from '../../protocol/operations.ts';
import type { FinderDeps } from './process-finder.ts';
import { firstOfAny, IdleAnswers, scatter } from './scatter.ts';

type Changes = Results['changes'];

/** How far each host has been read. */
type Position = Map<string, { readonly epoch: string; readonly version: number }>;

interface Cursor {
  readonly epoch: string;
  readonly owner: Owner;
  version: number;
  /** By version; the newest few, so that a client whose answer was lost can ask again. */
  readonly positions: Map<number, Position>;
}

const DEFAULT_ROWS = 1000;
const KEPT_POSITIONS = 4;
/** One per open dashboard. */
const MOST_CURSORS = 1000;

export class FleetChanges {
  private readonly deps: FinderDeps;
  private readonly cursors = new Map<string, Cursor>();

  constructor(deps: FinderDeps) {
    this.deps = deps;
  }

  async changes(owner: Owner, params: Params<'changes'>, signal?: CancelSignal): Promise<Changes> {
    const { epoch, after, limit = DEFAULT_ROWS, waitMs = 0 } = params;
    const { clock, settled } = this.deps;
    await settled();
    const known = epoch === undefined ? undefined : this.cursors.get(epoch);
    const last = known?.owner === owner ? known.positions.get(after ?? 0) : undefined;
    let cursor = known && last ? known : this.newCursor(owner);
    let position: Position = new Map(last);
    let reset = last === undefined;
    const untilUs = clock.nowUs() + waitMs * 1000;
    const idle = new IdleAnswers();
    for (;;) {
      const taken = await this.take(owner, position, limit, signal);
      if (taken === 'anew') {
        cursor = this.newCursor(owner);
        position = new Map();
        reset = true;
        continue;
      }
      const leftMs = (untilUs - clock.nowUs()) / 1000;
      const found = taken.changed.length + taken.removed.length > 0;
      if (reset || found || taken.more || leftMs <= 0) {
        cursor.version += 1;
        cursor.positions.set(cursor.version, position);
        cursor.positions.delete(cursor.version - KEPT_POSITIONS);
        return { epoch: cursor.epoch, version: cursor.version, reset, ...taken };
      }
      const wait = { waitMs: Math.ceil(leftMs), idle };
      idle.note(await this.nextChange(owner, position, wait, signal));
    }
  }

  private newCursor(owner: Owner): Cursor {
    const cursor: Cursor = { epoch: randomId(), owner, version: 0, positions: new Map() };
    this.cursors.set(cursor.epoch, cursor);
    const [oldest] = this.cursors.keys();
    if (this.cursors.size > MOST_CURSORS && oldest !== undefined) this.cursors.delete(oldest);
    return cursor;
  }

  /** "anew": a host has left, or begun its list anew, so the copies must too. */
  private async take(
    owner: Owner,
    position: Position,
    limit: number,
    signal: CancelSignal | undefined,
  ): Promise<Pick<Changes, 'more' | 'changed' | 'removed'> | 'anew'> {
    const { asker, table } = this.deps;
    if ([...position.keys()].some((host) => !table.get(host))) return 'anew';
    const { answers } = await scatter(
      this.deps,
      (host, stop) => {
        const { epoch, version: after } = position.get(host) ?? {};
        const params = { epoch, after, limit };
        return asker.ask(host, { op: 'changes', owner, params }, { signal: stop });
      },
      signal,
    );
    const changed: Changes['changed'][number][] = [];
    const removed: Changes['removed'][number][] = [];
    let more = false;
    for (const { host, answer } of answers) {
      if (answer.reset && position.has(host)) return 'anew';
      if (changed.length >= limit) {
        more ||= answer.changed.length + answer.removed.length > 0;
        continue;
      }
      changed.push(...answer.changed);
      removed.push(...answer.removed);
      more ||= answer.more;
      position.set(host, { epoch: answer.epoch, version: answer.version });
    }
    return { more, changed, removed };
  }

  private nextChange(
    owner: Owner,
    position: Position,
    { waitMs, idle }: { readonly waitMs: number; readonly idle: IdleAnswers },
    signal: CancelSignal | undefined,
  ): Promise<string | undefined> {
    const wait = async (host: string, stop: CancelSignal): Promise<unknown> => {
      const { epoch, version: after } = position.get(host) ?? {};
      const params = { epoch, after, limit: 1, waitMs };
      return this.deps.asker.ask(host, { op: 'changes', owner, params }, { signal: stop });
    };
    return firstOfAny(this.deps, wait, { waitMs, idle }, signal);
  }
}
