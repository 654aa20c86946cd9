// The descendants of a root process: who they are, whether any is left, and signals that reach them and nobody else.
// A number is no identity: it is believed only while the kernel cannot have given it away.

import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { errnoOf } from '../base/disk.ts';
import { HoldfastError } from '../protocol/errors.ts';
import type { Posix } from './posix.ts';
import { PosixError } from './posix-library.ts';
import {
  allPids,
  childrenOf,
  isAlive,
  type Marker,
  markerOf,
  markersOf,
  ownChildren,
  type ProcessEntry,
  readEntry,
} from './proc-table.ts';

/** A root that was started as leader of a session, and all that came from it. */
export interface Family {
  /** Also the number of its session and of its first process group. */
  readonly rootPid: number;
  readonly marker: Marker;
  /**
   * `nowTicks()` when the root was reaped; absent while it is not. 0 when that is not known, as after a restart: the
   * numbers then prove nothing and only the marker counts.
   */
  readonly reapedAtTicks?: number;
}

export type Delivery = 'sent' | 'gone' | 'not_ours' | 'not_permitted';

// Descriptors held at once while a large family is signalled.
const batchSize = 256;
// Processes looked at per turn of the event loop: about 2 ms.
const turnSize = 128;
// How often somebody in the moment of exec is looked at again, about 1 ms each: such a moment is longest on a busy
// machine, where it waits for a processor.
const maxUnsureTurns = 1000;

/** Whether the group has a living member. Ask only about a group whose number cannot have been reused since. */
export function groupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') return false;
  }
  // kill(2) counts zombies too. Members mostly have the numbers that follow the group's.
  const pids = allPids().toSorted((a, b) => Number(a < group) - Number(b < group) || a - b);
  return pids.some((pid) => {
    const entry = readEntry(pid);
    return isAlive(entry) && entry.group === group;
  });
}

/** By number: only while the root has not been reaped, because until then the kernel keeps its number for it. */
export function signalGroup(group: number, signal: string): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
    throw error;
  }
}

/**
 * Cheap, for the moment of an exit, in a process that is subreaper: every living descendant of a dead root then hangs
 * below a child of this process that is not a root itself. Misses only what has shed both its session and its marker;
 * whoever cannot be told yet, because it is in the moment of exec, counts as left.
 */
export function anyLeft(family: Family, livingRoots: Iterable<number>): boolean {
  for (const { membership } of below(family, livingRoots)) if (membership !== 'no') return true;
  return false;
}

/** Cheap: those below the root by parentage, and those who came to this process as orphans; not the root. */
export function livingBelow(family: Family, livingRoots: Iterable<number>): number[] {
  return [...below(family, livingRoots)]
    .filter(({ membership }) => membership === 'yes')
    .map(({ pid }) => pid);
}

type Membership = 'yes' | 'no' | 'unknown';

function* below(
  family: Family,
  livingRoots: Iterable<number>,
): Generator<{ pid: number; membership: Membership }> {
  const roots = new Set(livingRoots);
  const line = ownChildren()
    .filter((pid) => !roots.has(pid))
    .map((pid) => ({ pid, proven: false, ours: true }));
  if (family.reapedAtTicks === undefined) {
    for (const pid of childrenOf(family.rootPid)) line.push({ pid, proven: true, ours: false });
  }
  for (let next = line.pop(); next; next = line.pop()) {
    const entry = readEntry(next.pid);
    const membership = next.proven || !entry ? 'yes' : membershipOf(family, entry);
    if (!isAlive(entry) || !isAlive(readEntry(next.pid))) {
      // Whoever came from it is our own child now and not in this line. Its end is still to be told to us.
      if (next.ours) yield { pid: next.pid, membership: 'unknown' };
      continue;
    }
    if (family.reapedAtTicks === undefined && entry.pid === family.rootPid) continue;
    yield { pid: entry.pid, membership };
    const proven = membership === 'yes';
    for (const pid of childrenOf(entry.pid)) line.push({ pid, proven, ours: false });
  }
}

/**
 * Thorough: looks at every process of the machine, some per turn of the event loop. Living descendants without the
 * root, children before their parents. What is born meanwhile can be missed: ask again until nothing is found.
 */
export async function findDescendants(family: Family): Promise<ProcessEntry[]> {
  const [found = []] = await findFamilies([family]);
  return found;
}

/** As `findDescendants`, for many families in one walk. Their markers have one name. */
export async function findFamilies(families: readonly Family[]): Promise<ProcessEntry[][]> {
  const table = new Table();
  await inTurns(allPids(), (pid) => table.add(readEntry(pid)));
  const all = families.map((family) => ({ family, members: new Map<number, ProcessEntry>() }));
  const bySession = grouped(all, ({ family }) => family.rootPid);
  const byMarker = grouped(all, ({ family }) => family.marker.value);
  for (const entry of table.entries) {
    for (const { family, members } of bySession.get(entry.session) ?? []) {
      if (isInSession(family, entry)) table.collect(entry, members);
    }
  }
  const name = families[0]?.marker.name ?? '';
  let unsure = table.entries;
  for (let turn = 0; unsure.length > 0 && turn < maxUnsureTurns; turn += 1) {
    const stillUnsure: ProcessEntry[] = [];
    await inTurns(unsure, (entry) => {
      const values = markersOf(entry.pid, name);
      if (values === 'unknown') stillUnsure.push(entry);
      else
        for (const value of values)
          for (const { members } of byMarker.get(value) ?? []) table.collect(entry, members);
    });
    unsure = stillUnsure;
  }
  return all.map(({ family, members }) => {
    if (family.reapedAtTicks === undefined) members.delete(family.rootPid);
    return deepestFirst(members);
  });
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
  for (let from = 0; from < items.length; from += turnSize) {
    for (const item of items.slice(from, from + turnSize)) each(item);
    await nextTurn();
  }
}

/** What one walk over /proc saw, with everybody's children. */
class Table {
  readonly entries: ProcessEntry[] = [];
  private readonly children = new Map<number, ProcessEntry[]>();

  add(entry: ProcessEntry | undefined): void {
    if (!isAlive(entry) || entry.isKernelThread || entry.pid === process.pid) return;
    this.entries.push(entry);
    const siblings = this.children.get(entry.parent);
    if (siblings) siblings.push(entry);
    else this.children.set(entry.parent, [entry]);
  }

  /** Adds a process and all below it. */
  collect(first: ProcessEntry, into: Map<number, ProcessEntry>): void {
    const line = [first];
    for (let entry = line.pop(); entry; entry = line.pop()) {
      if (into.has(entry.pid)) continue;
      into.set(entry.pid, entry);
      line.push(...(this.children.get(entry.pid) ?? []));
    }
  }
}

/**
 * Sends a signal to each of `found` that is still a member of the family, and returns those it reached. Descriptors
 * first, proofs second, signals last: a parent that dies takes away the proof of a child that has only its parentage.
 */
export function signalMembers(
  posix: Posix,
  family: Family,
  found: readonly ProcessEntry[],
  signal: string,
): number[] {
  const reached: number[] = [];
  for (let from = 0; from < found.length; from += batchSize) {
    const held: Held[] = [];
    try {
      for (const { pid } of found.slice(from, from + batchSize)) {
        const pidfd = openProcess(posix, pid);
        if (pidfd !== undefined) held.push({ pid, pidfd });
      }
      const proven = held.filter(({ pid }) => belongsTo(family, pid));
      for (const one of proven) if (send(posix, one, signal) === 'sent') reached.push(one.pid);
    } finally {
      held.forEach(({ pidfd }) => closeSync(pidfd));
    }
  }
  return reached;
}

/** `verify` is asked after the process is held: what it finds out about the number is then true of what is signalled. */
export function signalPid(
  posix: Posix,
  pid: number,
  signal: string,
  verify: (pid: number) => boolean,
): Delivery {
  const pidfd = openProcess(posix, pid);
  if (pidfd === undefined) return 'gone';
  try {
    return verify(pid) ? send(posix, { pid, pidfd }, signal) : 'not_ours';
  } finally {
    closeSync(pidfd);
  }
}

/** Whether the process that has this number now is a living member: by itself, or through its parents. */
export function belongsTo(family: Family, pid: number): boolean {
  let entry = readEntry(pid);
  while (isAlive(entry) && entry.pid > 1 && entry.pid !== process.pid) {
    if (membershipOf(family, entry) === 'yes') return true;
    const parent = readEntry(entry.parent);
    // A process gets another parent only when its own dies. If it still names this one, then that was its parent.
    if (readEntry(entry.pid)?.parent !== parent?.pid) return false;
    entry = parent;
  }
  return false;
}

function membershipOf(family: Family, entry: ProcessEntry): Membership {
  if (isInSession(family, entry)) return 'yes';
  const marker = markerOf(entry.pid, family.marker);
  if (marker === 'same') return 'yes';
  return marker === 'unknown' ? 'unknown' : 'no';
}

/**
 * A process gets its session from its parent at birth, or makes one with its own number. So whoever is in the root's
 * session and was born before the root was reaped has it from the root's family. The number is free again only when
 * the root is reaped and the session empty; somebody born later in "the same" session may be a stranger.
 */
function isInSession({ rootPid, reapedAtTicks }: Family, entry: ProcessEntry): boolean {
  if (entry.session !== rootPid) return false;
  return reapedAtTicks === undefined || (entry.pid !== rootPid && entry.startTicks < reapedAtTicks);
}

function deepestFirst(members: ReadonlyMap<number, ProcessEntry>): ProcessEntry[] {
  const withDepth = [...members.values()].map((entry) => {
    let depth = 0;
    let parent = members.get(entry.parent);
    // The walk was not one moment, so that a reused number could close a circle.
    while (parent && depth < members.size) {
      depth += 1;
      parent = members.get(parent.parent);
    }
    return { entry, depth };
  });
  return withDepth.toSorted((a, b) => b.depth - a.depth).map(({ entry }) => entry);
}

interface Held {
  readonly pid: number;
  readonly pidfd: number;
}

function openProcess(posix: Posix, pid: number): number | undefined {
  try {
    return posix.openProcess(pid);
  } catch (error) {
    if (!(error instanceof PosixError)) throw error;
    if (error.errno === 'ESRCH') return undefined;
    const code =
      error.errno === 'ENOSYS' || error.errno === 'EPERM' ? 'unsupported' : 'too_many_files';
    throw new HoldfastError(code, `process ${pid} cannot be held for a signal (${error.errno})`);
  }
}

function send(posix: Posix, { pidfd }: Held, signal: string): Delivery {
  try {
    posix.signalProcess(pidfd, signalNumber(signal));
    return 'sent';
  } catch (error) {
    if (error instanceof PosixError && error.errno === 'ESRCH') return 'gone';
    if (error instanceof PosixError && error.errno === 'EPERM') return 'not_permitted';
    throw error;
  }
}

function signalNumber(name: string): number {
  const value = Object.entries(constants.signals).find(([known]) => known === name)?.[1];
  if (value === undefined) throw new HoldfastError('invalid_input', `${name} is not a signal`);
  return value;
}
