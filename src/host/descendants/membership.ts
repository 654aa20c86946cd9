// Recognises the process that a program belongs to by what it carries itself: the session of a root, a session that a
// member made, or the marker.

import { isInSession, type Family } from './descendants.ts';
import { MARKER_NAME } from '../start/environment.ts';
import type { ProcessFacts } from '../process/facts.ts';
import type { ProcessEntry, ProcessTable } from '../../system/proc-table.ts';

/** A session id or a marker, which identifies the owner. */
export type OwnerKey = number | string;

export interface Owner {
  readonly facts: Pick<ProcessFacts, 'pid' | 'serial'>;
  /** The root has not been reaped. */
  readonly rootAlive: boolean;
  readonly reapedAtTicks: number;
}

export class Owners<P extends Owner> {
  private readonly table: ProcessTable;
  private readonly known: (key: OwnerKey) => void;
  private readonly byMarker = new Map<string, P>();
  private readonly byRoot = new Map<number, Set<P>>();
  /**
   * Sessions that members made. A program without marker and parents is still recognised by the session of the member
   * it came from, as long as it was reparented to us.
   */
  private readonly bySession = new Map<number, Set<P>>();
  private readonly sessions = new Map<P, Set<number>>();

  /** `known` is called with everything that identifies a member from then on. */
  constructor(table: ProcessTable, known: (key: OwnerKey) => void) {
    this.table = table;
    this.known = known;
  }

  add(process: P): void {
    const { pid, serial } = process.facts;
    this.byMarker.set(serial, process);
    addTo(this.byRoot, pid, process);
    this.known(pid);
    this.known(serial);
  }

  noteSession(process: P, session: number): void {
    if (session === process.facts.pid) return;
    addTo(this.bySession, session, process);
    addTo(this.sessions, process, session);
    this.known(session);
  }

  remove(process: P): void {
    const { pid, serial } = process.facts;
    if (this.byMarker.get(serial) === process) this.byMarker.delete(serial);
    removeFrom(this.byRoot, pid, process);
    for (const session of this.sessions.get(process) ?? [])
      removeFrom(this.bySession, session, process);
    this.sessions.delete(process);
  }

  /** All that are not settled. */
  all(): Iterable<P> {
    return this.byMarker.values();
  }

  /** The process whose root this is. */
  rootOf(pid: number): P | undefined {
    for (const process of this.byRoot.get(pid) ?? []) if (process.rootAlive) return process;
    return undefined;
  }

  /** By its session alone: that of a root, or one that a member made. */
  inSession(entry: ProcessEntry): P | undefined {
    for (const process of this.byRoot.get(entry.session) ?? [])
      if (isInSession(familyOf(process), entry)) return process;
    const [first, second] = this.bySession.get(entry.session) ?? [];
    return second ? undefined : first;
  }

  /** "unknown" during exec. */
  of(entry: ProcessEntry): ReadonlySet<P> | 'unknown' {
    const owners = new Set(this.bySession.get(entry.session));
    const roots = [...(this.byRoot.get(entry.session) ?? [])];
    const proven = roots.filter((process) => isInSession(familyOf(process), entry));
    for (const process of proven) owners.add(process);
    // The session of a root is proof enough. A read of the environment can wait for that process's turn on a processor.
    if (proven.length > 0) return owners;
    const markers = this.table.markersOf(entry.pid, MARKER_NAME);
    if (markers === 'unknown') return owners.size > 0 ? owners : 'unknown';
    for (const value of markers) {
      const process = this.byMarker.get(value);
      if (process) owners.add(process);
    }
    return owners;
  }
}

export function familyOf({ facts, rootAlive, reapedAtTicks }: Owner): Family {
  const marker = { name: MARKER_NAME, value: facts.serial };
  const family = { rootPid: facts.pid, marker };
  return rootAlive ? family : { ...family, reapedAtTicks };
}

export function addTo<Key, Value>(map: Map<Key, Set<Value>>, key: Key, value: Value): void {
  const values = map.get(key);
  if (values) values.add(value);
  else map.set(key, new Set([value]));
}

export function removeFrom<Key, Value>(map: Map<Key, Set<Value>>, key: Key, value: Value): void {
  const values = map.get(key);
  values?.delete(value);
  if (values?.size === 0) map.delete(key);
}
