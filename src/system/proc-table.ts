// The kernel's table of processes, as /proc shows it at one moment. Everything read here may be out of date by the time
// it is looked at: descendants.ts says what may be concluded from it.

import { closeSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { uptime } from 'node:os';
import { errnoOf, systemDisk } from '../base/disk.ts';

export interface ProcessEntry {
  readonly pid: number;
  /** One letter; Z and X are no longer alive. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Its controlling terminal, as a device number; 0 for none. */
  readonly terminal: number;
  /** The group that has that terminal now. */
  readonly foreground: number;
  /** Forked and not another program yet: it looks like its parent. */
  readonly isFork: boolean;
  /** Not a process of anybody: it lives in the kernel. */
  readonly isKernelThread: boolean;
  /** It has begun to exit: its memory is gone, or goes next. */
  readonly isExiting: boolean;
  /**
   * The size of its environment; 0 where it may not be read. Undefined during exec, before the new program has one, and
   * after the memory was released in an exit.
   */
  readonly environmentBytes: number | undefined;
  /** Hundredths of a second since boot. Not an identity: many processes can begin within one. */
  readonly startTicks: number;
}

/** A variable that a family of processes carries in its environment. */
export interface Marker {
  readonly name: string;
  readonly value: string;
}

/**
 * The table as its readers see it. What is gone, or not ours to read, is undefined or empty. A read that fails for want
 * of a descriptor or of memory throws: it says nothing about the process.
 */
export interface ProcessTable {
  /** The number of this process. */
  readonly self: number;
  allPids(): number[];
  readEntry(pid: number): ProcessEntry | undefined;
  /** Children by every thread. One can be missed while a sibling of it ends (proc(5), /proc/pid/task/tid/children). */
  childrenOf(pid: number): number[];
  /**
   * The children of this process that came after the last one that `isSeen` knows, adopted ones included, as far as its
   * main thread has them: it starts them all, and the kernel gives orphans to the first living thread of a subreaper.
   * The kernel appends to this list, and only our own reaping takes from it, so none is missed.
   */
  newChildren(isSeen: (pid: number) => boolean): number[];
  /** Every value that the variable has in the environment of a process; "unknown" in the moment of exec. */
  markersOf(pid: number, name: string): readonly string[] | 'unknown';
  /** For people: its arguments, or its name when it has none. */
  commandOf(pid: number): string;
}

// include/linux/sched.h
const PF_EXITING = 0x00000004;
const PF_FORKNOEXEC = 0x00000040;
const PF_KTHREAD = 0x00200000;
// About 1 ms, in which an undisturbed exec is over.
const maxBlankLooks = 50;
/** A shorter file of /proc is read in one call, and so at one moment. */
const ONE_READ_BYTES = 16_384;

/** Grows to the largest file that was read, and is used again: nothing read is kept. */
let buffer = Buffer.allocUnsafeSlow(ONE_READ_BYTES);

function readAll(fd: number): Buffer {
  let length = 0;
  for (;;) {
    // A file of /proc gives at most a page or so per read, however much room there is.
    const count = systemDisk.readSync(fd, buffer.subarray(length), length);
    if (count === 0) return buffer.subarray(0, length);
    length += count;
    if (length === buffer.length) buffer = Buffer.concat([buffer], length * 2);
  }
}

/** The bytes are good until the next call. */
function read(path: string): Buffer | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    return readAll(fd);
  } catch (error) {
    if (isShortage(error)) throw error;
    // Gone, or not ours to read.
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Whether a call failed for want of descriptors or memory. */
export function isShortage(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'ENOMEM'].includes(errnoOf(error) ?? '');
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

/** Not a zombie, and not gone. */
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
  // Gone, or a kernel without the list (CONFIG_PROC_CHILDREN): then everybody is asked for their parent.
  return readEntry(pid) ? allPids().filter((other) => readEntry(other)?.parent === pid) : [];
}

/** Held open: a keeper without a free descriptor can still read it. */
let ownList: number | undefined;

function newChildren(isSeen: (pid: number) => boolean): number[] {
  const list = readOwnList();
  if (!list)
    return childrenOfThread(process.pid, String(process.pid)).filter((pid) => !isSeen(pid));
  const found: number[] = [];
  // Each number is followed by a blank. From the end, so that what was seen before costs nothing here.
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
  // A name for people is not worth an error.
  return argumentsOf(pid).join(' ').trim() || nameOf(pid);
}

/** What it was called with, its own name first; empty when it is gone or a thread of the kernel. */
export function argumentsOf(pid: number): string[] {
  const text = readIfPossible(`/proc/${pid}/cmdline`)?.toString() ?? '';
  return text === '' ? [] : text.replace(/\0$/, '').split('\0');
}

/** The first 15 bytes of the name of its program's file. */
export function nameOf(pid: number): string {
  return readIfPossible(`/proc/${pid}/comm`)?.toString().trim() ?? '';
}

/** Where its standard input comes from; undefined when that may not be read. */
export function inputOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/0`);
  } catch {
    return undefined;
  }
}

/**
 * None, also when its environment may not be read. "unknown": it is in the moment of exec, as a child still is when
 * posix_spawn or vfork has returned to its parent; on a busy machine that lasts until it is given a processor.
 *
 * An exec between `open` and `read`, or between two reads, ends the file early without an error: the old memory is gone.
 * A program may exec again and again. So an empty or long environment is believed only with the size that the kernel gives.
 */
function markersOf(pid: number, name: string): readonly string[] | 'unknown' {
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

/** Hundredths of a second since boot, on the clock of `startTicks`. */
export function nowTicks(): number {
  return Math.floor(uptime() * 100);
}
