// Lists all processes that match a filter. Pages follow the order of starting, so that none is missed while others start,
// end or are deleted.

import type { ProcessPage } from './host-api.ts';
import type { Params } from './operations.ts';
import type { ProcessInfo } from './process.ts';

type Filter = Omit<Params<'list'>, 'limit' | 'skip' | 'before'>;

/** Above the number of any process. */
const FROM_THE_NEWEST = 2 ** 48 - 1;

/** In the order of a list: running ones first, then the newest first. Rows are slim: see `cut` of `ProcessInfo`. */
export async function listAll(
  page: (filter: Params<'list'>) => Promise<ProcessPage>,
  filter: Filter = {},
): Promise<ProcessInfo[]> {
  const all: ProcessInfo[] = [];
  for (let before: number | undefined = FROM_THE_NEWEST; before !== undefined;) {
    const answer: ProcessPage = await page({ ...filter, before });
    all.push(...answer.processes);
    before = answer.next;
  }
  const running = ({ outcome }: ProcessInfo): number => Number(outcome === undefined);
  return all.sort((a, b) => running(b) - running(a) || b.startedAtMs - a.startedAtMs);
}
