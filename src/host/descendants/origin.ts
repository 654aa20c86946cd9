// Where a program of this machine came from: from a process of this host, or from elsewhere. A subreaper stays an ancestor
// of everything it has started, so parents tell. Whoever holds the program by a pidfd can believe the answer.

import { MARKER_NAME } from '../start/environment.ts';
import {
  isAlive,
  systemTable,
  type ProcessEntry,
  type ProcessTable,
} from '../../system/proc-table.ts';

/** "unknown": it came from this host, and nobody can say from which process. */
export type Origin<P> = P | 'outside' | 'unknown';

/** What is known about the processes of a host. */
export interface Known<P> {
  /** Started by this host, not reaped. */
  readonly rootOf: (pid: number) => P | undefined;
  /** The session of a process belongs to whoever made it, and can only be left, never joined from outside. */
  readonly inSession: (entry: ProcessEntry) => P | undefined;
  /** By the marker, which a program can set as it likes: asked last. */
  readonly bySerial: (serial: string) => P | undefined;
}

/** No program has more ancestors. One that makes itself so many is not followed further. */
const MOST_STEPS = 2000;

interface Line {
  /** From the program upwards, without the process that is asked about. */
  readonly entries: readonly ProcessEntry[];
  /** The last one is a child of the process that is asked about. */
  readonly arrives: boolean;
}

/**
 * The program and its ancestors below `top`. Undefined when it has ended, or when there is no end of them. A parent that
 * cannot be read (mounted with hidepid, another user) ends the line.
 */
export function lineUpTo(top: number, pid: number, table = systemTable): Line | undefined {
  let entries: ProcessEntry[] = [];
  let entry = table.readEntry(pid);
  for (let step = 0; step < MOST_STEPS && entry; step += 1) {
    if (entries.length === 0 && !isAlive(entry)) return undefined;
    entries.push(entry);
    if (entry.parent === top) return { entries, arrives: true };
    const parent = table.readEntry(entry.parent);
    // A process gets another parent only when its own ends. If it still names this one, then that was its parent.
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
  // An earlier keeper's descendants are no longer below anybody: the marker is all they have.
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
