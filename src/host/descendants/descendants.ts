// The descendants of a root process: which they are, whether any is left, and signals that reach only them. A pid is
// not an identity: it is valid only while the kernel cannot have reused it.

import { closeSync } from 'node:fs';
import { constants } from 'node:os';

import { errnoOf } from '../../base/disk.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { RefusedSignal } from '../../protocol/host-api.ts';
import type { Posix } from '../../system/posix.ts';
import { PosixError } from '../../system/posix-library.ts';
import {
  isAlive,
  isShortage,
  type Marker,
  type ProcessEntry,
  type ProcessTable,
  systemTable,
} from '../../system/proc-table.ts';

/** A root that was started as a session leader, and everything that came from it. */
export interface Family {
  /** Also the id of its session and of its first process group. */
  readonly rootPid: number;
  readonly marker: Marker;
  /**
   * `nowTicks()` when the root was reaped; absent while it is not. 0 if unknown, as after a restart: then only the
   * marker counts.
   */
  readonly reapedAtTicks?: number;
  /** Members for certain: orphans that were reparented to us and that we have not reaped. */
  readonly isAnchor?: (pid: number) => boolean;
}

/** Why a process did not get a signal. */
type Refusal = RefusedSignal['reason'];
export type Delivery = 'sent' | 'gone' | 'not_ours' | Refusal;

/** The processes that a signal reached, and those that it did not. */
export interface Reach {
  readonly reached: number[];
  readonly refused: { readonly pid: number; readonly reason: Refusal }[];
}

// Pidfds held at once while many processes are signalled.
const batchSize = 256;
// A signal is sent in one turn of the event loop, so a process that execs repeatedly is checked this often, 1 ms each.
const maxProofs = 5;

/** Whether the group has a living member. Only for a group whose number cannot have been reused. */
export function groupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') return false;
  }
  // kill(2) counts zombies too. Members usually have the pids after the group's.
  const pids = systemTable
    .allPids()
    .toSorted((a, b) => Number(a < group) - Number(b < group) || a - b);
  return pids.some((pid) => {
    const entry = systemTable.readEntry(pid);
    return isAlive(entry) && entry.group === group;
  });
}

/** By number: only while the root has not been reaped, because until then its pid is not reused. */
export function signalGroup(group: number, signal: string): 'sent' | 'gone' | 'not_permitted' {
  try {
    process.kill(-group, signal);
    return 'sent';
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return 'gone';
    // The kernel returns this only if it could signal no member at all.
    if (errnoOf(error) === 'EPERM') return 'not_permitted';
    throw error;
  }
}

/** Whether signals to this process are refused. A signal to a group succeeds if it reached one member. */
export function isForeign(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}

/** All processes below these by parentage, including themselves, that are alive. */
export function livingBelow(tops: Iterable<number>, table = systemTable): ProcessEntry[] {
  const queue = [...tops];
  const seen = new Set(queue);
  const found: ProcessEntry[] = [];
  for (const pid of queue) {
    const entry = table.readEntry(pid);
    if (!isAlive(entry)) continue;
    found.push(entry);
    for (const child of table.childrenOf(pid)) {
      if (seen.has(child)) continue;
      seen.add(child);
      queue.push(child);
    }
  }
  return found;
}

/**
 * Sends a signal to each of `found` that is still a member of the family. First pidfds, then verification, then
 * signals: when a parent dies, a child that is known only by parentage can no longer be verified.
 */
export function signalMembers(
  posix: Posix,
  family: Family,
  found: readonly ProcessEntry[],
  signal: string,
): Reach {
  const number = signalNumber(signal);
  const reach: Reach = { reached: [], refused: [] };
  for (let from = 0; from < found.length;) {
    const batch = holdSome(posix, found, from);
    from = batch.next;
    reach.refused.push(...batch.refused);
    try {
      const proven = batch.held.filter(({ pid }) => belongsTo(family, pid));
      for (const one of proven) note(reach, one.pid, send(posix, one, number));
    } catch (error) {
      if (!isShortage(error)) throw error;
      for (const { pid } of batch.held) reach.refused.push({ pid, reason: 'too_many_files' });
    } finally {
      batch.held.forEach(({ pidfd }) => closeSync(pidfd));
    }
  }
  return reach;
}

/**
 * Opens pidfds for as many of `found` as one batch and free descriptors allow. `next` is the start of the next batch.
 */
function holdSome(posix: Posix, found: readonly ProcessEntry[], from: number) {
  const held: (Held & { readonly at: number })[] = [];
  const refused: Reach['refused'] = [];
  const end = Math.min(from + batchSize, found.length);
  for (let at = from; at < end; at += 1) {
    const pid = found[at]?.pid ?? 0;
    const pidfd = openProcess(posix, pid);
    if (typeof pidfd === 'number') held.push({ pid, pidfd, at });
    else if (pidfd === 'too_many_files' && held.length > 0) {
      // Each verification needs a free descriptor too.
      const last = held.length > 1 ? held.pop() : undefined;
      if (last) closeSync(last.pidfd);
      return { held, refused, next: last?.at ?? at };
    } else if (pidfd !== 'gone') refused.push({ pid, reason: pidfd });
  }
  return { held, refused, next: end };
}

function note({ reached, refused }: Reach, pid: number, delivery: Delivery): void {
  if (delivery === 'sent') reached.push(pid);
  else if (delivery !== 'gone' && delivery !== 'not_ours') refused.push({ pid, reason: delivery });
}

/**
 * `verify` is called after the pidfd is open: what it finds about the pid is then true of the process that is
 * signalled.
 */
export function signalPid(
  posix: Posix,
  pid: number,
  signal: string,
  verify: (pid: number) => boolean,
): Delivery {
  const number = signalNumber(signal);
  const pidfd = openProcess(posix, pid);
  if (typeof pidfd !== 'number') return pidfd;
  try {
    return verify(pid) ? send(posix, { pid, pidfd }, number) : 'not_ours';
  } finally {
    closeSync(pidfd);
  }
}

/** Whether the process with this pid is a living member: by itself, or through its parents. */
export function belongsTo(family: Family, pid: number, table = systemTable): boolean {
  let entry = table.readEntry(pid);
  while (isAlive(entry) && entry.pid > 1 && entry.pid !== table.self) {
    if (family.isAnchor?.(entry.pid) || isInSession(family, entry)) return true;
    if (hasMarker(family.marker, entry.pid, table)) return true;
    const parent = table.readEntry(entry.parent);
    // A process is reparented only when its parent dies. If it still names this parent, then that was its parent.
    if (table.readEntry(entry.pid)?.parent !== parent?.pid) return false;
    entry = parent;
  }
  return false;
}

function hasMarker({ name, value }: Marker, pid: number, table: ProcessTable): boolean {
  for (let proof = 0; proof < maxProofs; proof += 1) {
    const markers = table.markersOf(pid, name);
    if (markers !== 'unknown') return markers.includes(value);
  }
  return false;
}

/**
 * A process inherits its session or makes one with its own pid. So a process in the root's session that started before
 * the root was reaped belongs to the root. The number can be reused only after the root was reaped and the session is
 * empty; a process that started later in "the same" session may belong to another process.
 */
export function isInSession({ rootPid, reapedAtTicks }: Family, entry: ProcessEntry): boolean {
  if (entry.session !== rootPid) return false;
  return reapedAtTicks === undefined || (entry.pid !== rootPid && entry.startTicks < reapedAtTicks);
}

interface Held {
  readonly pid: number;
  readonly pidfd: number;
}

function openProcess(posix: Posix, pid: number): number | 'gone' | Refusal {
  try {
    return posix.openProcess(pid);
  } catch (error) {
    if (!(error instanceof PosixError)) throw error;
    if (error.errno === 'ESRCH') return 'gone';
    const full = error.errno === 'EMFILE' || error.errno === 'ENFILE';
    return full ? 'too_many_files' : 'unsupported';
  }
}

function send(posix: Posix, { pidfd }: Held, signal: number): Delivery {
  try {
    posix.signalProcess(pidfd, signal);
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
