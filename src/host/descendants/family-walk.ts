// Finds all descendants of many processes in one walk over /proc, where nobody reports them: in a program that is no
// subreaper, and for what an earlier keeper left.

import { Turns } from '../../base/turns.ts';
import {
  isAlive,
  type ProcessEntry,
  type ProcessTable,
  systemTable,
} from '../../system/proc-table.ts';
import { isInSession, type Family } from './descendants.ts';
// Time slice in one turn of the event loop; each process takes 10 to 100 µs.
const turnMs = 1;
// How often a process in exec is checked again, about 1 ms each. exec takes longest on a busy machine, where it waits
// for a processor.
const maxUnsureTurns = 1000;
/** A machine that starts programs all the time has new ones in every pass. */
const maxPasses = 20;

interface Families {
  /** The living descendants of each family. */
  readonly found: ProcessEntry[][];
  /** A process stayed in exec: it may belong to any of the families. */
  readonly isUnsure: boolean;
}

/**
 * Thorough: checks every process of the machine, some per turn of the event loop, for all families in one walk. Their
 * markers have one name. Finds living descendants without the root, children before their parents. A member may fork and
 * end before the walk comes to it, so the walk goes on until there are no new processes.
 */
export async function findFamilies(
  families: readonly Family[],
  processes: ProcessTable = systemTable,
): Promise<Families> {
  const table = new Snapshot(processes.self);
  const all = families.map((family) => ({ family, members: new Map<number, ProcessEntry>() }));
  const bySession = grouped(all, ({ family }) => family.rootPid);
  const byMarker = grouped(all, ({ family }) => family.marker.value);
  const name = families[0]?.marker.name ?? '';
  const seen = new Set<number>();
  let isUnsure = false;
  for (let pass = 0; ; pass += 1) {
    const pids = processes.allPids().filter((pid) => !seen.has(pid));
    if (pids.length === 0 || pass === maxPasses) {
      isUnsure ||= pids.length > 0;
      break;
    }
    const entries: ProcessEntry[] = [];
    await inTurns(pids, (pid) => {
      seen.add(pid);
      const entry = table.add(processes.readEntry(pid));
      if (entry) entries.push(entry);
    });
    for (const entry of entries)
      for (const { family, members } of bySession.get(entry.session) ?? [])
        if (isInSession(family, entry)) members.set(entry.pid, entry);
    const unsure = await eachMarker(entries, { name, processes }, (entry, value) => {
      for (const { members } of byMarker.get(value) ?? []) members.set(entry.pid, entry);
    });
    isUnsure ||= unsure.length > 0;
  }
  const found = all.map(({ family, members }) => {
    table.addBelow(members);
    if (family.reapedAtTicks === undefined) members.delete(family.rootPid);
    return deepestFirst(members);
  });
  return { found, isUnsure };
}

/** Calls back for each value of the marker. Returns the processes that stayed in exec. */
async function eachMarker(
  entries: readonly ProcessEntry[],
  { name, processes }: { readonly name: string; readonly processes: ProcessTable },
  act: (entry: ProcessEntry, value: string) => void,
): Promise<readonly ProcessEntry[]> {
  let unsure = entries;
  for (let turn = 0; unsure.length > 0 && turn < maxUnsureTurns; turn += 1) {
    const stillUnsure: ProcessEntry[] = [];
    await inTurns(unsure, (entry) => {
      const values = processes.markersOf(entry.pid, name);
      // posix_spawn can return before the child has its own memory: until then it shows our environment.
      const isOurFork = entry.isFork && entry.parent === processes.self;
      if (values === 'unknown' || (values.length === 0 && isOurFork)) {
        const now = processes.readEntry(entry.pid);
        if (isAlive(now) && !now.isExiting) stillUnsure.push(now);
      } else for (const value of values) act(entry, value);
    });
    unsure = stillUnsure;
  }
  return unsure;
}

function grouped<T, Key>(items: readonly T[], keyOf: (item: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

async function inTurns<T>(items: readonly T[], each: (item: T) => void): Promise<void> {
  const turns = new Turns(turnMs);
  for (const item of items) {
    each(item);
    if (turns.isOver()) await turns.next();
  }
  await turns.next();
}

/** The children of the processes that one walk over /proc saw. */
class Snapshot {
  private readonly self: number;
  private readonly children = new Map<number, ProcessEntry[]>();

  constructor(self: number) {
    this.self = self;
  }

  /** Undefined if it cannot be a descendant. */
  add(entry: ProcessEntry | undefined): ProcessEntry | undefined {
    if (!isAlive(entry) || entry.isKernelThread || entry.pid === this.self) return undefined;
    const siblings = this.children.get(entry.parent);
    if (siblings) siblings.push(entry);
    else this.children.set(entry.parent, [entry]);
    return entry;
  }

  /** Adds everything below these processes to them. */
  addBelow(members: Map<number, ProcessEntry>): void {
    const line = [...members.keys()];
    for (let pid = line.pop(); pid !== undefined; pid = line.pop())
      for (const child of this.children.get(pid) ?? []) {
        if (members.has(child.pid)) continue;
        members.set(child.pid, child);
        line.push(child.pid);
      }
  }
}

function deepestFirst(members: ReadonlyMap<number, ProcessEntry>): ProcessEntry[] {
  const withDepth = [...members.values()].map((entry) => {
    let depth = 0;
    let parent = members.get(entry.parent);
    // The walk was not one moment, so a reused pid could close a cycle.
    while (parent && depth < members.size) {
      depth += 1;
      parent = members.get(parent.parent);
    }
    return { entry, depth };
  });
  return withDepth.toSorted((a, b) => b.depth - a.depth).map(({ entry }) => entry);
}
