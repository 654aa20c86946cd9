// Which descriptors can be read or written now: any number of them behind one handle of the event loop. A socket of
// Node's on every pipe would cost each start a tenth of a millisecond, and libuv sees the end of a terminal too early.

import { closeSync } from 'node:fs';

import type { Posix } from '../../system/posix.ts';
import { PosixError, type LoopHandle } from '../../system/posix-library.ts';

/** The two directions that somebody waits for. */
export interface Interest {
  readonly read: boolean;
  readonly write: boolean;
}

type Ready = (happened: Happened) => void;

/** `read` is also told at the end of what can be read, `write` also when nothing can be written any more. */
export interface Happened extends Interest {
  /** Nobody has the other end open: what is in it is all that comes. */
  readonly hangUp: boolean;
}

/** The kernel has no room for another watch (epoll_ctl(2)): the descriptor is tried again after so long. */
const AGAIN_MS = 50;
const NO_ROOM: ReadonlySet<string> = new Set(['ENOMEM', 'ENOSPC']);

export class Poller {
  private readonly posix: Posix;
  private readonly epoll: number;
  private readonly handle: LoopHandle;
  private readonly watched = new Map<number, Interest & { readonly ready: Ready }>();
  /** What the kernel has in its list. */
  private readonly listed = new Set<number>();
  /** What it had no room for. Nothing is missed meanwhile: it tells what can be done, not what has changed. */
  private readonly refused = new Set<number>();
  private again: NodeJS.Timeout | undefined;

  constructor(posix: Posix) {
    this.posix = posix;
    this.epoll = posix.openEpoll();
    this.handle = posix.whenReadable(this.epoll, () => this.look());
    this.handle.unref();
  }

  /** `ready` is called from the event loop as long as the interest lasts and is met. */
  watch(fd: number, { read, write }: Interest, ready: Ready): void {
    const known = this.watched.get(fd);
    if (!read && !write) {
      if (known) this.forget(fd);
      return;
    }
    if (known?.read === read && known.write === write) return;
    if (this.watched.size === 0) this.handle.ref();
    this.watched.set(fd, { read, write, ready });
    this.list(fd, { read, write });
  }

  private list(fd: number, { read, write }: Interest, known = this.listed.has(fd)): void {
    try {
      this.posix.epollSet(this.epoll, fd, { read, write, known });
      this.listed.add(fd);
      this.refused.delete(fd);
    } catch (error) {
      const errno = error instanceof PosixError ? error.errno : '';
      // It could not be taken from the list when it was forgotten.
      if (errno === 'EEXIST') this.list(fd, { read, write }, true);
      else if (NO_ROOM.has(errno)) this.listLater(fd);
      else throw error;
    }
  }

  private listLater(fd: number): void {
    this.refused.add(fd);
    this.again ??= setTimeout(() => this.listRefused(), AGAIN_MS);
  }

  private listRefused(): void {
    this.again = undefined;
    for (const fd of this.refused) {
      const interest = this.watched.get(fd);
      if (interest) this.list(fd, interest);
    }
  }

  /** To be called before the descriptor is closed. */
  forget(fd: number): void {
    if (!this.watched.delete(fd)) return;
    this.refused.delete(fd);
    if (this.listed.delete(fd)) this.unlist(fd);
    if (this.watched.size === 0) this.handle.unref();
  }

  /** If that fails, the kernel does it when the descriptor is closed. */
  private unlist(fd: number): void {
    try {
      this.posix.epollRemove(this.epoll, fd);
    } catch (error) {
      if (!(error instanceof PosixError)) throw error;
    }
  }

  close(): void {
    clearTimeout(this.again);
    this.watched.clear();
    this.handle.close();
    closeSync(this.epoll);
  }

  // A number that was closed and given again in the meantime is told once for nothing: reading it says "not now".
  private look(): void {
    this.posix.epollWait(this.epoll, (fd, happened) => this.watched.get(fd)?.ready(happened));
  }
}
