// Finds living descendants by parentage alone, some per turn of the event loop. Everything that came from a process of
// a subreaper is below its root or below an orphan. It reads no memory of other processes: a read of /proc/PID/environ
// waits while that process maps memory, up to 300 ms on a busy machine.

import { FairTurns } from '../../base/fair-turns.ts';
import { Turns } from '../../base/turns.ts';
import { isAlive, type ProcessEntry, type ProcessTable } from '../../system/proc-table.ts';

/** Time slice in one turn of the event loop; each process takes 30 to 100 µs. */
const TURN_MS = 1;
/** How often the tops are requested again because an orphan came meanwhile. The next search finds what is missed. */
const MOST_ROUNDS = 20;

/** When many processes are ended at once, each search has a slice of each turn. */
const AT_ONCE = 8;

export class TreeSearches {
  private readonly table: ProcessTable;
  private readonly turns = new FairTurns({ atOnce: AT_ONCE, perLoop: AT_ONCE });

  constructor(table: ProcessTable) {
    this.table = table;
  }

  find(tops: () => Iterable<number>): Promise<ProcessEntry[]> {
    return this.turns.run('', () => findBelow(tops, this.table));
  }
}

/**
 * Children before their parents, with the tops. `tops` is called again until it returns nothing new, because a process
 * that lost its parent during the search has become an orphan.
 */
async function findBelow(
  tops: () => Iterable<number>,
  table: ProcessTable,
): Promise<ProcessEntry[]> {
  const found: ProcessEntry[] = [];
  const seen = new Set<number>();
  const turns = new Turns(TURN_MS);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const queue = [...tops()].filter((pid) => !seen.has(pid));
    if (queue.length === 0) break;
    for (const pid of queue) {
      if (turns.isOver()) await turns.next();
      if (seen.has(pid)) continue;
      seen.add(pid);
      const entry = table.readEntry(pid);
      if (!isAlive(entry)) continue;
      found.push(entry);
      for (const child of table.childrenOf(pid)) queue.push(child);
    }
  }
  return found.toReversed();
}
