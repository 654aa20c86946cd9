// The kernel's table of processes, as /proc shows it at one moment. Everything read here may be out of date by the time
// it is looked at: descendants.ts says what may be concluded from it.

import { readdirSync, readFileSync } from 'node:fs';
import { uptime } from 'node:os';

export interface ProcessEntry {
  readonly pid: number;
  /** One letter; Z and X are no longer alive. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Not a process of anybody: it lives in the kernel. */
  readonly isKernelThread: boolean;
  /** In the moment of exec, before the new program has its arguments and environment; also while it ends. */
  readonly isBlank: boolean;
  /** Hundredths of a second since boot. Not an identity: many processes can begin within one. */
  readonly startTicks: number;
}

/** A variable that a family of processes carries in its environment. */
export interface Marker {
  readonly name: string;
  readonly value: string;
}

// include/linux/sched.h
const PF_KTHREAD = 0x00200000;
// About 1 ms, in which an undisturbed exec is over.
const maxBlankLooks = 50;

function read(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    // Gone, or not ours to read.
    return undefined;
  }
}

export function readEntry(pid: number): ProcessEntry | undefined {
  const text = read(`/proc/${pid}/stat`)?.toString('latin1');
  if (text === undefined) return undefined;
  // The second field is the name in parentheses, and a name may contain both blanks and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    pid,
    state: fields[0] ?? 'X',
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    isKernelThread: (Number(fields[6]) & PF_KTHREAD) !== 0,
    isBlank: fields[48] === '0',
    startTicks: Number(fields[19]),
  };
}

export function isAlive(entry: ProcessEntry | undefined): entry is ProcessEntry {
  return entry !== undefined && entry.state !== 'Z' && entry.state !== 'X';
}

export function allPids(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0);
}

/** Children by every thread. One can be missed while a sibling of it ends (proc(5), /proc/pid/task/tid/children). */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => childrenOfThread(pid, thread));
  } catch {
    return [];
  }
}

/**
 * The children of this process, adopted ones included, as far as its main thread has them: it starts them all, and the
 * kernel gives orphans to the first living thread of a subreaper.
 */
export function ownChildren(): number[] {
  return childrenOfThread(process.pid, String(process.pid));
}

function childrenOfThread(pid: number, thread: string): number[] {
  const listed = read(`/proc/${pid}/task/${thread}/children`);
  if (listed) return listed.toString('latin1').split(' ').map(Number).filter(Boolean);
  // Gone, or a kernel without the list (CONFIG_PROC_CHILDREN): then everybody is asked for their parent.
  return readEntry(pid) ? allPids().filter((other) => readEntry(other)?.parent === pid) : [];
}

/** For people: its arguments, or its name when it has none. */
export function commandOf(pid: number): string {
  const words = read(`/proc/${pid}/cmdline`)?.toString().split('\0').join(' ').trim();
  return words || read(`/proc/${pid}/comm`)?.toString().trim() || '';
}

/**
 * Whether a process carries the variable with this value. "none" also when its environment may not be read. "unknown":
 * it is in the moment of exec, as a child still is when posix_spawn or vfork has returned to its parent; on a busy
 * machine that lasts until it is given a processor.
 */
export function markerOf(pid: number, marker: Marker): 'same' | 'other' | 'none' | 'unknown' {
  const values = markersOf(pid, marker.name);
  if (values === 'unknown') return 'unknown';
  if (values.includes(marker.value)) return 'same';
  return values.length > 0 ? 'other' : 'none';
}

/** Every value that the variable has in the environment of a process; "unknown" as above. */
export function markersOf(pid: number, name: string): readonly string[] | 'unknown' {
  for (let look = 0; look < maxBlankLooks; look += 1) {
    const environment = read(`/proc/${pid}/environ`);
    if (environment === undefined) return [];
    if (environment.length > 0) return valuesIn(environment, name);
    const entry = readEntry(pid);
    if (!isAlive(entry) || entry.isKernelThread) return [];
    if (!entry.isBlank) return valuesIn(read(`/proc/${pid}/environ`) ?? environment, name);
  }
  return 'unknown';
}

function valuesIn(environment: Buffer, name: string): string[] {
  const values: string[] = [];
  const start = `${name}=`;
  for (let at = environment.indexOf(start); at >= 0; at = environment.indexOf(start, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue;
    const end = environment.indexOf(0, at);
    values.push(environment.toString('utf8', at + start.length, end < 0 ? undefined : end));
  }
  return values;
}

/** Hundredths of a second since boot, on the clock of `startTicks`. */
export function nowTicks(): number {
  return Math.floor(uptime() * 100);
}
