// The lock of a home's keeper or server. Its file names the holder. The kernel releases the lock when the holder dies.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { loadPosix, posixProblem, type Posix } from '../system/posix.ts';
import type { CloseReport } from '../protocol/host-api.ts';
import { openPrivate } from './home.ts';

/** Every holder writes this into the lock's file. */
export interface LockNote {
  readonly pid: number;
  /** Start time of that process: in another container the pid may belong to another process. */
  readonly startTicks?: number;
}

/** A keeper's note. */
export interface KeeperNote extends LockNote {
  /** Written at the end: what it ended and what it could not end. */
  readonly closed?: CloseReport;
}

/** The message of a keeper that finds another one. */
export const TAKEN = 'another keeper has this home';

/** Notes are padded, so that a later one fits on a disk that is full by then. */
const NOTE_BYTES = 1024;
/** Retries for a lock that another process holds for a moment. */
const TRIES = 200;
const RETRY_MS = 1;

export class HomeLock<Note extends LockNote> {
  private fd: number | undefined;
  private readonly posix: Posix;

  constructor(fd: number, posix: Posix) {
    this.fd = fd;
    this.posix = posix;
  }

  note(note: Note): void {
    if (this.fd === undefined) return;
    const text = Buffer.from(`${JSON.stringify(note)}\n`.padEnd(NOTE_BYTES));
    writeSync(this.fd, text, 0, text.length, 0);
    ftruncateSync(this.fd, text.length);
  }

  /** Erases the note of an earlier holder; `kept` stays and must not name a process. */
  forget(kept?: Partial<Omit<Note, keyof LockNote>>): void {
    if (this.fd === undefined) return;
    const text = kept ? JSON.stringify(kept) : '';
    writeSync(this.fd, text.padEnd(fstatSync(this.fd).size), 0);
  }

  /**
   * A second call does nothing: another file may have the descriptor by then. Unlocks before closing, because a child before
   * its exec shares the open file and would keep the lock.
   */
  release(): void {
    const { fd } = this;
    if (fd === undefined) return;
    this.fd = undefined;
    this.posix.unlock(fd);
    closeSync(fd);
  }
}

/** Undefined if another process has it. `keep` chooses what stays of the last holder's note until the next one. */
export function takeLock<Note extends LockNote>(
  path: string,
  keep: (last: Note) => Partial<Omit<Note, keyof LockNote>> | undefined = () => undefined,
): HomeLock<Note> | undefined {
  const posix = loadPosix();
  if (!posix) throw new Error(`system calls cannot be made here: ${posixProblem() ?? 'unknown'}`);
  const fd = openPrivate(path, constants.O_RDWR);
  if (!gotLock(posix, fd)) {
    closeSync(fd);
    return undefined;
  }
  const lock = new HomeLock<Note>(fd, posix);
  const last = readNote<Note>(fd);
  lock.forget(last && keep(last));
  return lock;
}

/** A process that only checks the lock holds it for a moment: wait for that, blocking, because we do nothing else yet. */
function gotLock(posix: Posix, fd: number): boolean {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < TRIES; tries += 1) {
    if (posix.tryLock(fd)) return true;
    Atomics.wait(clock, 0, 0, RETRY_MS);
  }
  return posix.tryLock(fd);
}

/** The holder of the lock; "unknown" if it has not written its note yet, undefined if the lock is free. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a file cannot say what was written into it
export function lockHolder<Note extends LockNote>(path: string): Note | 'unknown' | undefined {
  // A check creates no file.
  if (!existsSync(path)) return undefined;
  const fd = openPrivate(path, constants.O_RDWR);
  try {
    if (loadPosix()?.tryLock(fd) !== false) return undefined;
    const note = readNote<Partial<Note>>(fd);
    return note?.pid === undefined ? 'unknown' : (note as Note);
  } finally {
    closeSync(fd);
  }
}

/** Whether the server that served last died without releasing its lock, and no other one has it. */
export function serverDied(path: string): boolean {
  if (lockHolder(path) !== undefined) return false;
  return readNote<LockNote & { readonly url?: string }>(path)?.url !== undefined;
}

/** The note of the current or last holder. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a file cannot say what was written into it
export function readNote<Note extends Partial<LockNote>>(file: string | number): Note | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) ?? undefined) as Note | undefined;
  } catch {
    // No note yet, or it is just being written.
    return undefined;
  }
}
