// The lock of a home's keeper or server. One process at a time has it, and the lock's file says which. The kernel frees
// the lock of a holder that died, however it died.

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

/** What every holder says of itself. */
export interface LockNote {
  readonly pid: number;
  /** When that process began, as the kernel counts: in another container the number is somebody else's. */
  readonly startTicks?: number;
}

/** What a keeper writes into its lock. */
export interface KeeperNote extends LockNote {
  /** Its last words: what it ended and what it could not end. */
  readonly closed?: CloseReport;
}

/** What a keeper says that finds another one. */
export const TAKEN = 'another keeper has this home';

/** The first note takes a whole block of the disk, so that the later ones fit on a disk that is full by then. */
const NOTE_BYTES = 1024;
/** A lock that is taken is tried again so often, so long apart. */
const MOST_LOOKS = 200;
const LOOK_MS = 1;

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

  /** Nobody may take what an earlier holder said for the word of this one: what is kept of it names no process. */
  forget(kept?: Partial<Omit<Note, keyof LockNote>>): void {
    if (this.fd === undefined) return;
    const text = kept ? JSON.stringify(kept) : '';
    writeSync(this.fd, text.padEnd(fstatSync(this.fd).size), 0);
  }

  /**
   * A second call does nothing: by then another file may have the descriptor's number. Unlocks before closing: a child that
   * has not reached its exec shares the open file, and would hold the lock for as long as it hangs.
   */
  release(): void {
    const { fd } = this;
    if (fd === undefined) return;
    this.fd = undefined;
    this.posix.unlock(fd);
    closeSync(fd);
  }
}

/** Undefined when another process has it. `keep` says what of the last holder's note stays until there is another. */
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

/** Whoever only looks has the lock for a moment: that is waited for, by a program that does nothing else yet. */
function gotLock(posix: Posix, fd: number): boolean {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    if (posix.tryLock(fd)) return true;
    Atomics.wait(clock, 0, 0, LOOK_MS);
  }
  return posix.tryLock(fd);
}

/** Who has the lock now; "unknown" when the holder has not said so yet, undefined when nobody has it. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a file cannot say what was written into it
export function lockHolder<Note extends LockNote>(path: string): Note | 'unknown' | undefined {
  // Whoever only looks makes no file.
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

/** What the last holder said, whether it is still there or not. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- a file cannot say what was written into it
export function readNote<Note extends Partial<LockNote>>(file: string | number): Note | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) ?? undefined) as Note | undefined;
  } catch {
    // Nothing was said yet, or it is just being said.
    return undefined;
  }
}
