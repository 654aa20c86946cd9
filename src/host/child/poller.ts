// Watches any number of descriptors with one epoll set behind one handle of the event loop. A Node socket per pipe would
// cost each start a tenth of a millisecond, and libuv reports the end of a terminal too early.

import { closeSync, writeSync } from 'node:fs';

import type { Posix } from '../../system/posix.ts';
import { checkLoopPoll, type LoopHandle, type WatchReadable } from '../../system/loop-poll.ts';
import { PosixError } from '../../system/posix-library.ts';

/** The directions to watch. */
export interface Interest {
  readonly read: boolean;
  readonly write: boolean;
}

type Ready = (happened: Happened) => void;

/** `read` and `write` are also set after a hang-up. */
export interface Happened extends Interest {
  /** The other end is closed: what the descriptor holds now is all that comes. */
  readonly hangUp: boolean;
}

/** Retry delay when the kernel cannot take another watch (epoll_ctl(2)). */
const RETRY_MS = 50;
const RETRYABLE: ReadonlySet<string> = new Set(['ENOMEM', 'ENOSPC']);

export class Poller {
  private readonly posix: Posix;
  private readonly epoll: number;
  private handle: LoopHandle;
  private readonly watched = new Map<number, Interest & { readonly ready: Ready }>();
  /** In the kernel's epoll set. */
  private readonly registered = new Set<number>();
  /** Refused by the kernel, to be retried. No event is missed meanwhile: the set is level-triggered. */
  private readonly refused = new Set<number>();
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(posix: Posix) {
    this.posix = posix;
    this.epoll = posix.openEpoll();
    this.handle = this.open(posix.watch.koffi);
  }

  private open(watch: WatchReadable): LoopHandle {
    const handle = watch(this.epoll, () => this.dispatch());
    handle.unref();
    return handle;
  }

  /** Tests koffi's poll handle with a pipe; if it does not work, a pool thread polls instead. */
  async check(watch = this.posix.watch.koffi, withinMs?: number): Promise<'koffi' | 'thread'> {
    const [read, write] = this.posix.pipe();
    try {
      const fill = (): void => void writeSync(write, '.');
      if (await checkLoopPoll(watch, { read, fill }, withinMs)) return 'koffi';
    } finally {
      closeSync(read);
      closeSync(write);
    }
    this.handle.close();
    this.handle = this.open(this.posix.watch.thread);
    if (this.watched.size > 0) this.handle.ref();
    return 'thread';
  }

  /** Calls `ready` from the event loop whenever a watched direction is ready. */
  watch(fd: number, { read, write }: Interest, ready: Ready): void {
    const known = this.watched.get(fd);
    if (!read && !write) {
      if (known) this.forget(fd);
      return;
    }
    if (known?.read === read && known.write === write) return;
    if (this.watched.size === 0) this.handle.ref();
    this.watched.set(fd, { read, write, ready });
    this.register(fd, { read, write });
  }

  private register(fd: number, { read, write }: Interest, known = this.registered.has(fd)): void {
    try {
      this.posix.epollSet(this.epoll, fd, { read, write, known });
      this.registered.add(fd);
      this.refused.delete(fd);
    } catch (error) {
      const errno = error instanceof PosixError ? error.errno : '';
      // An earlier removal failed.
      if (errno === 'EEXIST') this.register(fd, { read, write }, true);
      else if (RETRYABLE.has(errno)) this.retryLater(fd);
      else throw error;
    }
  }

  private retryLater(fd: number): void {
    this.refused.add(fd);
    this.retryTimer ??= setTimeout(() => {
      this.retryTimer = undefined;
      for (const each of this.refused) {
        const interest = this.watched.get(each);
        if (interest) this.register(each, interest);
      }
    }, RETRY_MS);
  }

  /** Call it before the descriptor is closed. */
  forget(fd: number): void {
    if (!this.watched.delete(fd)) return;
    this.refused.delete(fd);
    if (this.registered.delete(fd)) this.unregister(fd);
    if (this.watched.size === 0) this.handle.unref();
  }

  /** If that fails, the kernel removes the descriptor when it is closed. */
  private unregister(fd: number): void {
    try {
      this.posix.epollRemove(this.epoll, fd);
    } catch (error) {
      if (!(error instanceof PosixError)) throw error;
    }
  }

  close(): void {
    clearTimeout(this.retryTimer);
    this.watched.clear();
    this.handle.close();
    closeSync(this.epoll);
  }

  // A descriptor number that was closed and reused meanwhile may be reported once in error; its read returns EAGAIN.
  private dispatch(): void {
    this.posix.epollWait(this.epoll, (fd, happened) => this.watched.get(fd)?.ready(happened));
  }
}
