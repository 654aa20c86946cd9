// Which descriptors can be read or written now: any number of them behind one handle of the event loop. A socket of
// Node's on every pipe would cost each start a tenth of a millisecond, and libuv sees the end of a terminal too early.

import { closeSync } from 'node:fs';

import type { Posix } from './posix.ts';
import type { LoopHandle } from './posix-library.ts';

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

export class Readiness {
  private readonly posix: Posix;
  private readonly epoll: number;
  private readonly handle: LoopHandle;
  private readonly watched = new Map<number, Interest & { readonly ready: Ready }>();

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
    this.posix.epollSet(this.epoll, fd, { read, write, known: known !== undefined });
    if (this.watched.size === 0) this.handle.ref();
    this.watched.set(fd, { read, write, ready });
  }

  /** To be called before the descriptor is closed. */
  forget(fd: number): void {
    if (!this.watched.delete(fd)) return;
    this.posix.epollRemove(this.epoll, fd);
    if (this.watched.size === 0) this.handle.unref();
  }

  close(): void {
    this.watched.clear();
    this.handle.close();
    closeSync(this.epoll);
  }

  // A number that was closed and given again in the meantime is told once for nothing: reading it says "not now".
  private look(): void {
    this.posix.epollWait(this.epoll, (fd, happened) => this.watched.get(fd)?.ready(happened));
  }
}
