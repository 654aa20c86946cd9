// Reads the kernel's process table from /proc. Every answer may be out of date when it is used; descendants.ts says what
// may be concluded from it.

import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { uptime } from 'node:os';
import { groupMarkers } from './confine/group-names.ts';
import { errnoOf, systemDisk } from '../base/disk.ts';

export interface ProcessEntry {
  readonly pid: number;
  /** One letter; Z and X are no longer alive. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Device number of its controlling terminal; 0 for none. */
  readonly terminal: number;
  /** Foreground process group of that terminal. */
  readonly foreground: number;
  /** Forked without exec yet: it still looks like its parent. */
  readonly isFork: boolean;
  readonly isKernelThread: boolean;
  /** It has begun to exit: its memory is gone, or goes next. */
  readonly isExiting: boolean;
  /**
   * The size of its environment; 0 where it may not be read. Undefined during exec, before the new program has one, and
   * after the memory was released in an exit.
   */
  readonly environmentBytes: number | undefined;
  /** Start time in hundredths of a second since boot. Not an identity: many processes can start in one tick. */
  readonly startTicks: number;
}

/** An environment variable that descendants inherit. */
export interface Marker {
  readonly name: string;
  readonly value: string;
}

/**
 * The process table. A process that has ended, or that we may not read, is undefined or empty. A read that fails for lack
 * of a descriptor or of memory throws, because it says nothing about the process.
 */
export interface ProcessTable {
  /** Pid of this process. */
  readonly self: number;
  allPids(): number[];
  readEntry(pid: number): ProcessEntry | undefined;
  /** Children of all threads. One can be missed while its sibling ends (proc(5), /proc/pid/task/tid/children). */
  childrenOf(pid: number): number[];
  /**
   * Children of our main thread that were added after the last one that `isSeen` accepts, adopted orphans included. The
   * main thread has them all: it starts children, and the kernel reparents orphans to the first living thread of a
   * subreaper. The kernel appends to this list and only our reaping removes from it, so none is missed.
   */
  newChildren(isSeen: (pid: number) => boolean): number[];
  /** All values of the variable in the environment of a process; "unknown" during exec. */
  markersOf(pid: number, name: string): readonly string[] | 'unknown';
  /** For people: its arguments, or its name if it has none. */
  commandOf(pid: number): string;
}

// include/linux/sched.h
const PF_EXITING = 0x00000004;
const PF_FORKNOEXEC = 0x00000040;
const PF_KTHREAD = 0x00200000;
// About 1 ms: longer than an undisturbed exec.
const maxBlankLooks = 50;
/** A shorter file of /proc is read in one call, and so at one moment. */
const ONE_READ_BYTES = 16_384;

/** Reused by every read; grows to the largest file. */
let buffer = Buffer.allocUnsafeSlow(ONE_READ_BYTES);

function readAll(fd: number): Buffer {
  let length = 0;
  for (;;) {
    // One read of a /proc file returns about one page, however large the buffer is.
    const count = systemDisk.readSync(fd, buffer.subarray(length), length);
    if (count === 0) return buffer.subarray(0, length);
    length += count;
    if (length === buffer.length) buffer = Buffer.concat([buffer], length * 2);
  }
}

/** The returned bytes are valid until the next call. */
function read(path: string): Buffer | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    return readAll(fd);
  } catch (error) {
    if (isShortage(error)) throw error;
    // The process has ended, or we may not read it.
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Whether a call failed for lack of descriptors or memory. */
export function isShortage(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'ENOMEM'].includes(errnoOf(error) ?? '');
}

export function readEntry(pid: number): ProcessEntry | undefined {
  const text = read(`/proc/${pid}/stat`)?.toString('latin1');
  if (text === undefined) return undefined;
  // The second field is the name in parentheses; the name itself may contain blanks and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    pid,
    state: fields[0] ?? 'X',
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    terminal: Number(fields[4]),
    foreground: Number(fields[5]),
    isFork: (Number(fields[6]) & PF_FORKNOEXEC) !== 0,
    isKernelThread: (Number(fields[6]) & PF_KTHREAD) !== 0,
    isExiting: (Number(fields[6]) & PF_EXITING) !== 0,
    // The kernel sets the end of the code last in an exec. Until then the environment can look empty.
    environmentBytes: fields[24] === '0' ? undefined : Number(fields[48]) - Number(fields[47]),
    startTicks: Number(fields[19]),
  };
}

/** Neither ended nor a zombie. */
export function isAlive(entry: ProcessEntry | undefined): entry is ProcessEntry {
  return entry !== undefined && entry.state !== 'Z' && entry.state !== 'X';
}

function allPids(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0);
}

export function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch (error) {
    if (isShortage(error)) throw error;
    return [];
  }
  return threads.flatMap((thread) => childrenOfThread(pid, thread));
}

function childrenOfThread(pid: number, thread: string): number[] {
  const listed = read(`/proc/${pid}/task/${thread}/children`);
  if (listed) return listed.toString('latin1').split(' ').map(Number).filter(Boolean);
  // The process has ended, or the kernel lacks CONFIG_PROC_CHILDREN: then compare the parent of every process.
  return readEntry(pid) ? allPids().filter((other) => readEntry(other)?.parent === pid) : [];
}

/** Kept open, so that a keeper without a free descriptor can still read it. */
let ownList: number | undefined;

function newChildren(isSeen: (pid: number) => boolean): number[] {
  const list = readOwnList();
  if (!list)
    return childrenOfThread(process.pid, String(process.pid)).filter((pid) => !isSeen(pid));
  const found: number[] = [];
  // Each number is followed by a blank. Parsed from the end, so that children seen before cost nothing.
  let [pid, place] = [0, 1];
  for (let at = list.length - 2; at >= -1; at -= 1) {
    const digit = (list[at] ?? BLANK) - ZERO;
    if (digit >= 0) {
      pid += digit * place;
      place *= 10;
      continue;
    }
    if (pid > 0 && isSeen(pid)) break;
    if (pid > 0) found.push(pid);
    [pid, place] = [0, 1];
  }
  return found.toReversed();
}

const [BLANK, ZERO] = [0x20, 0x30];

function readOwnList(): Buffer | undefined {
  try {
    ownList ??= openSync(`/proc/self/task/${process.pid}/children`, 'r');
    return readAll(ownList);
  } catch (error) {
    if (isShortage(error)) throw error;
    return undefined;
  }
}

function readIfPossible(path: string): Buffer | undefined {
  try {
    return read(path);
  } catch {
    return undefined;
  }
}

export function commandOf(pid: number): string {
  return argumentsOf(pid).join(' ').trim() || nameOf(pid);
}

/** Its argv; empty if it has ended or is a kernel thread. */
export function argumentsOf(pid: number): string[] {
  const text = readIfPossible(`/proc/${pid}/cmdline`)?.toString() ?? '';
  return text === '' ? [] : text.replace(/\0$/, '').split('\0');
}

/** The first 15 bytes of its program's file name. */
export function nameOf(pid: number): string {
  return readIfPossible(`/proc/${pid}/comm`)?.toString().trim() ?? '';
}

/** What its status says of its confinement; of one that has ended, that there is none. */
export function statusOf(pid: number): { namespaces: number; hasNoNewPrivileges: boolean } {
  const text = readIfPossible(`/proc/${pid}/status`)?.toString('latin1') ?? '';
  // Its number in each pid namespace, from that of /proc on.
  const numbers = /^NSpid:(.*)$/m.exec(text)?.[1]?.trim().split(/\s+/) ?? [];
  return { namespaces: numbers.length, hasNoNewPrivileges: /^NoNewPrivs:\s+1$/m.test(text) };
}

/** The file behind its standard input; undefined if we may not read that. */
export function inputOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return undefined;
  }
}

/** Numbers of the system call `read`. */
const READ_CALL = process.arch === 'x64' ? '0' : process.arch === 'arm64' ? '63' : undefined;

/** The file that a process is blocked in a read of; undefined if it is not, or if the kernel does not tell us. */
export function blockedReadOf(pid: number): string | undefined {
  const text = readIfPossible(`/proc/${pid}/syscall`)?.toString('latin1') ?? '';
  const [call, descriptor] = text.split(' ');
  if (call === undefined || call !== READ_CALL) return undefined;
  try {
    return readlinkSync(`/proc/${pid}/fd/${Number(descriptor)}`);
  } catch {
    return undefined;
  }
}

/**
 * Empty also if we may not read its environment. "unknown" during exec: posix_spawn and vfork return before the child's
 * exec is complete; on a busy machine that lasts until the child is scheduled.
 *
 * An exec between `open` and `read`, or between two reads, ends the file early without an error: the old memory is gone.
 * A program may exec again and again. So an empty or long environment is believed only with the size that the kernel gives.
 */
function markersOf(pid: number, name: string): readonly string[] | 'unknown' {
  // A program cannot empty its group as it can its environment. Reading it does not wait for the program either.
  const groups = groupMarkers(read(`/proc/${pid}/cgroup`)?.toString('latin1') ?? '');
  if (groups.length > 0) return groups;
  for (let look = 0; look < maxBlankLooks; look += 1) {
    const environment = read(`/proc/${pid}/environ`);
    if (environment === undefined) return [];
    const { length } = environment;
    const values = valuesIn(environment, name);
    if (values.length > 0 || (length > 0 && length < ONE_READ_BYTES)) return values;
    const entry = readEntry(pid);
    if (!isAlive(entry) || entry.isKernelThread || entry.environmentBytes === length) return [];
    if (entry.isExiting) return 'unknown';
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

export const systemTable: ProcessTable = {
  self: process.pid,
  allPids,
  readEntry,
  childrenOf,
  newChildren,
  markersOf,
  commandOf,
};

/** Now, on the clock of `startTicks`. */
export function nowTicks(): number {
  return Math.floor(uptime() * 100);
}
