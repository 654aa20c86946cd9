// Walks over /proc that many searches share. A walk serves every search requested before it began, and only one runs at
// a time: ending a thousand processes one by one would otherwise be a thousand walks.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Family } from './descendants.ts';
import { findFamilies } from './family-walk.ts';
import type { ProcessEntry, ProcessTable } from '../../system/proc-table.ts';

interface Walk {
  /** Requested when the walk begins. */
  readonly families: (() => Family)[];
  readonly done: ReturnType<typeof findFamilies>;
}

export class SharedWalks {
  private readonly table: ProcessTable;
  private next: Walk | undefined;
  private last: Promise<unknown> = nextTurn();

  constructor(table: ProcessTable) {
    this.table = table;
  }

  /** Living descendants without the root. `isUnsure`: a process could not be identified, and may be one. */
  async find(family: () => Family): Promise<{ found: ProcessEntry[]; isUnsure: boolean }> {
    this.next ??= this.plan();
    const { families, done } = this.next;
    const index = families.push(family) - 1;
    const { found, isUnsure } = await done;
    return { found: found[index] ?? [], isUnsure };
  }

  private plan(): Walk {
    const families: Walk['families'] = [];
    const done = this.last.then(() => {
      this.next = undefined;
      return findFamilies(
        families.map((family) => family()),
        this.table,
      );
    });
    this.last = done.catch(() => undefined);
    return { families, done };
  }
}
