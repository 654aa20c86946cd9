// Finds out whether a program on this machine came from a process of this host. A subreaper stays an ancestor of
// everything that it started, so the parents decide. The answer holds only if the caller holds a pidfd of the program.

import { MARKER_NAME } from '../start/environment.ts';
import {
  isAlive,
  systemTable,
  type ProcessEntry,
  type ProcessTable,
} from '../../system/proc-table.ts';

/** "unknown": it came from this host, from an unknown process. */
export type Origin<P> = P | 'outside' | 'unknown';

/** What the host knows about its processes. */
export interface Known<P> {
  /** Started by this host and not reaped. */
  readonly rootOf: (pid: number) => P | undefined;
  /** A session belongs to the process that made it. It can be left, but not joined from outside. */
  readonly inSession: (entry: ProcessEntry) => P | undefined;
  /** By the marker, which a program can set itself: used last. */
  readonly bySerial: (serial: string) => P | undefined;
}

/** No honest program has more ancestors. A longer chain is not followed. */
const MOST_STEPS = 2000;

interface Line {
  /** From the program upwards, without the top process itself. */
  readonly entries: readonly ProcessEntry[];
  /** The last one is a child of the top process. */
  readonly arrives: boolean;
}

/**
 * The program and its ancestors below `top`. Undefined if it has ended, or if the chain is too long. A parent that
 * cannot be read (hidepid, another user) ends the chain.
 */
export function lineUpTo(top: number, pid: number, table = systemTable): Line | undefined {
  let entries: ProcessEntry[] = [];
  let entry = table.readEntry(pid);
  for (let step = 0; step < MOST_STEPS && entry; step += 1) {
    if (entries.length === 0 && !isAlive(entry)) return undefined;
    entries.push(entry);
    if (entry.parent === top) return { entries, arrives: true };
    const parent = table.readEntry(entry.parent);
    // A process is reparented only when its parent ends. If it still names this parent, then that was its parent.
    const again = table.readEntry(entry.pid);
    if (again?.parent === entry.parent) {
      if (!parent) return { entries, arrives: false };
      entry = parent;
    } else {
      entries = [];
      entry = table.readEntry(pid);
    }
  }
  return undefined;
}

export function originOf<P>(pid: number, known: Known<P>, table: ProcessTable): Origin<P> {
  const line = lineUpTo(table.self, pid, table);
  if (!line) return 'unknown';
  const { entries, arrives } = line;
  // Descendants of an earlier keeper are no longer below us: they have only the marker.
  if (!arrives) return byMarker(entries, known, table) ?? 'outside';
  const root = known.rootOf(entries.at(-1)?.pid ?? 0);
  if (root) return root;
  for (const entry of entries.toReversed()) {
    const process = known.inSession(entry);
    if (process) return process;
  }
  return byMarker(entries, known, table) ?? 'unknown';
}

function byMarker<P>(
  entries: readonly ProcessEntry[],
  { bySerial }: Known<P>,
  table: ProcessTable,
): P | undefined {
  for (const { pid } of entries) {
    const values = table.markersOf(pid, MARKER_NAME);
    if (values === 'unknown') continue;
    for (const value of values) {
      const process = bySerial(value);
      if (process) return process;
    }
  }
  return undefined;
}
