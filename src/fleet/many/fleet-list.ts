// The list of all hosts' processes. It is answered within two seconds and names the hosts that are missing.

import type { CancelSignal } from '../../base/cancel-signal.ts';
import { listRows } from '../../host/list-rows.ts';
import type { Owner, ProcessPage } from '../../protocol/host-api.ts';
import { DEFAULT_LIST_ROWS } from '../../protocol/limits.ts';
import type { Params } from '../../protocol/operations.ts';
import type { ProcessInfo } from '../../protocol/process.ts';
import { FROM_THE_NEWEST, pageLength, placeOf, saltOf, timeOf } from './fleet-order.ts';
import type { FinderDeps } from './process-finder.ts';
import { scatter, type Gathered } from './scatter.ts';

/** One host starts fewer than this in a millisecond: a page always reaches past the rows of one place. */
const SAME_MS_ROWS = 64;
const MOST_ROWS = 10_000;

type ListParams = Params<'list'>;
type Pages = Gathered<ProcessPage>;

export async function listFleet(
  deps: FinderDeps,
  owner: Owner,
  params: ListParams,
  signal?: CancelSignal,
): Promise<ProcessPage> {
  await deps.settled();
  return params.before === undefined
    ? listByState(deps, owner, params, signal)
    : listByStart(deps, owner, { ...params, before: params.before }, signal);
}

function gather(
  deps: FinderDeps,
  owner: Owner,
  params: ListParams,
  signal: CancelSignal | undefined,
): Promise<Pages> {
  return scatter(
    deps,
    (host, stop) => deps.asker.ask(host, { op: 'list', owner, params }, { signal: stop }),
    signal,
  );
}

/** Running processes first, then the newest. */
async function listByState(
  deps: FinderDeps,
  owner: Owner,
  params: ListParams,
  signal: CancelSignal | undefined,
): Promise<ProcessPage> {
  const { skip = 0, limit = DEFAULT_LIST_ROWS, ...filter } = params;
  const wanted = Math.min(MOST_ROWS, skip + limit);
  const pages = await gather(deps, owner, { ...filter, limit: wanted }, signal);
  const cuts: ProcessInfo[] = [];
  for (const { answer } of pages.answers) {
    const last = answer.processes.at(-1);
    if (last && answer.processes.length < answer.total) cuts.push(last);
  }
  const rows = pages.answers
    .flatMap(({ answer }) => answer.processes)
    // Behind the last row of a host that has more, rows of that host would be missing.
    .filter((row) => cuts.every((cut) => byState(row, cut) <= 0))
    .sort(byState);
  return page(fitting(rows.slice(skip, skip + limit)), pages);
}

function byState(a: ProcessInfo, b: ProcessInfo): number {
  const runningFirst = Number(b.outcome === undefined) - Number(a.outcome === undefined);
  return runningFirst || b.startedAtMs - a.startedAtMs;
}

/** In the order of starting, which does not change between two pages. */
async function listByStart(
  deps: FinderDeps,
  owner: Owner,
  params: ListParams & { readonly before: number },
  signal: CancelSignal | undefined,
): Promise<ProcessPage> {
  const { before, skip = 0, limit = DEFAULT_LIST_ROWS, ...filter } = params;
  const asked = {
    ...filter,
    before: FROM_THE_NEWEST,
    startedBefore: Math.min(filter.startedBefore ?? Infinity, timeOf(before)),
    limit: Math.min(MOST_ROWS, skip + limit + SAME_MS_ROWS),
  };
  const pages = await gather(deps, owner, asked, signal);
  const rows: { place: number; row: ProcessInfo }[] = [];
  let [horizon, passed] = [-1, 0];
  for (const { host, answer } of pages.answers) {
    const salt = saltOf(host);
    const placed = answer.processes.map((row) => ({ place: placeOf(row.startedAtMs, salt), row }));
    const left = placed.filter(({ place }) => place < before);
    passed += placed.length - left.length;
    rows.push(...left);
    if (answer.next !== undefined) horizon = Math.max(horizon, placed.at(-1)?.place ?? -1);
  }
  rows.sort((a, b) => b.place - a.place);
  const known = rows.filter(({ place }) => place > horizon);
  const usable = (known.length > 0 ? known : rows).slice(skip);
  const places = usable.map(({ place }) => place);
  const shown = fitting(usable.slice(0, pageLength(places, limit)).map(({ row }) => row));
  const length = shown.length === places.length ? shown.length : pageLength(places, shown.length);
  const last = places[length - 1];
  const more = last !== undefined && (length + skip < rows.length || horizon >= 0);
  const processes = usable.slice(0, length).map(({ row }) => row);
  return page(processes, pages, { passed, ...(more && { next: last }) });
}

/** As many rows as fit in one answer. */
function fitting(rows: readonly ProcessInfo[]): ProcessInfo[] {
  return listRows(rows.map((row) => ({ info: () => row })));
}

function page(
  processes: readonly ProcessInfo[],
  { answers, missing }: Pages,
  { passed = 0, next }: { readonly passed?: number; readonly next?: number } = {},
): ProcessPage {
  const total = answers.reduce((count, { answer }) => count + answer.total, 0) - passed;
  return {
    processes,
    total,
    ...(next !== undefined && { next }),
    ...(missing.size > 0 && { incomplete: [...missing.keys()].sort() }),
  };
}
