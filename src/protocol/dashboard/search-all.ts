// Searches the output of all processes, the newest process first, and hands over each one's hits as they are found.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { HoldfastError } from '../errors.ts';
import type { Owner, ProcessPage } from '../host-api.ts';
import type { Params } from '../operations.ts';
import type { ProcessInfo } from '../process.ts';
import type { SearchHit, SearchResult } from '../views.ts';

export type SearchAllParams = Pick<Params<'list'>, 'name' | 'label' | 'state' | 'before'> &
  Pick<Params<'search'>, 'pattern' | 'kind' | 'ignoreCase' | 'context'> & {
    /** Of hits altogether; 200 by default. */
    readonly limit?: number | undefined;
    /** Of hits in one process; 20 by default. */
    readonly perProcess?: number | undefined;
  };

type FoundProcess = Pick<
  ProcessInfo,
  'owner' | 'id' | 'name' | 'command' | 'state' | 'outcome' | 'startedAtMs' | 'streams'
>;

export type SearchAllLine =
  | {
      readonly type: 'hits';
      readonly process: FoundProcess;
      readonly hits: readonly SearchHit[];
      /** The process has more. */
      readonly truncated: boolean;
    }
  | { readonly type: 'progress'; readonly searched: number; readonly total: number }
  | {
      readonly type: 'end';
      readonly searched: number;
      readonly total: number;
      /** `before` of the next search, which continues with older processes; absent when all were searched. */
      readonly next?: number;
    };

export interface Searchable {
  list(filter: Params<'list'>): Promise<ProcessPage>;
  search(owner: Owner, params: Params<'search'>): Promise<SearchResult>;
}

const DEFAULT_LIMIT = 200;
const DEFAULT_PER_PROCESS = 20;
const PAGE = 50;
/** Searched at the same time: others of this owner go first in between. */
const AT_ONCE = 4;
const FROM_THE_NEWEST = 2 ** 48 - 1;

export async function* searchAll(
  host: Searchable,
  params: SearchAllParams,
  signal?: CancelSignal,
): AsyncGenerator<SearchAllLine> {
  const { limit = DEFAULT_LIMIT, perProcess = DEFAULT_PER_PROCESS, before, ...rest } = params;
  const { name, label, state, ...query } = rest;
  const filter = { name, label, state };
  let left = limit;
  let searched = 0;
  let total = 0;
  for (let from = before ?? FROM_THE_NEWEST; ;) {
    const page = await host.list({ ...filter, before: from, limit: PAGE });
    total = Math.max(total, page.total);
    for (let at = 0; at < page.processes.length && !isGone(signal); at += AT_ONCE) {
      const some = page.processes.slice(at, at + AT_ONCE);
      const found = await Promise.all(
        some.map((process) => hitsIn(host, process, { ...query, limit: perProcess })),
      );
      for (const [index, result] of found.entries()) {
        const process = some[index];
        searched += 1;
        if (!process || !result || result.hits.length === 0) continue;
        const hits = result.hits.slice(0, left);
        left -= hits.length;
        const truncated = result.truncated || hits.length < result.hits.length;
        yield { type: 'hits', process: shortOf(process), hits, truncated };
        if (left > 0) continue;
        const next = await nextBehind(host, { ...filter, before: from }, at + index + 1);
        yield { type: 'end', searched, total, ...next };
        return;
      }
      if (searched < total) yield { type: 'progress', searched, total };
    }
    if (page.next === undefined || isGone(signal)) break;
    from = page.next;
  }
  yield { type: 'end', searched, total };
}

function isGone(signal: CancelSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** Undefined for a process that was removed meanwhile. */
async function hitsIn(
  host: Searchable,
  { owner, id, bytes }: ProcessInfo,
  query: Omit<Params<'search'>, 'id'>,
): Promise<SearchResult | undefined> {
  if (bytes.retained === 0) return undefined;
  try {
    return await host.search(owner, { id, ...query });
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** The place behind the first processes of a page. */
async function nextBehind(
  host: Searchable,
  filter: Params<'list'>,
  count: number,
): Promise<{ readonly next?: number }> {
  const { next } = await host.list({ ...filter, limit: count });
  return next === undefined ? {} : { next };
}

function shortOf(process: ProcessInfo): FoundProcess {
  const { owner, id, name, command, state, outcome, startedAtMs, streams } = process;
  return {
    owner,
    id,
    command,
    state,
    startedAtMs,
    streams,
    ...(name !== undefined && { name }),
    ...(outcome && { outcome }),
  };
}
