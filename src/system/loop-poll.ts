// Watches one descriptor from the event loop. koffi's poll handle does it without a thread, but koffi does not document it,
// so its version is pinned, `checkLoopPoll` tests it at start, and poll(2) in a pool thread replaces it where it fails.

import { setImmediate as nextTurn } from 'node:timers/promises';

/** While it is referenced it keeps the event loop alive. */
export interface LoopHandle {
  ref(): void;
  unref(): void;
  close(): void;
}

/** Calls back in every turn of the event loop in which the descriptor is readable, until the handle is closed. */
export type WatchReadable = (fd: number, callback: () => void) => LoopHandle;

/** koffi's `node.poll`, as far as we use it. */
export type KoffiPoll = (
  fd: number,
  events: { readable: true },
  callback: () => void,
) => LoopHandle;

const POLLIN = 1;
/** How long a pool thread waits: the exit of the program is delayed by up to this. */
const SLICE_MS = 100;
/** Far longer than a turn of the event loop, even on a busy machine. */
const CHECK_MS = 10_000;

export function watchByKoffi(poll: KoffiPoll): WatchReadable {
  return (fd, callback) =>
    poll(fd, { readable: true }, () => {
      // koffi calls back without a callback scope: from Node 26 on, promises would wait for the next event otherwise.
      setImmediate(() => undefined);
      callSafely(callback);
    });
}

type PollInThread = (fds: Int32Array, count: number, timeoutMs: number) => Promise<number>;

export function watchByThread(poll: PollInThread): WatchReadable {
  return (fd, callback) => new ThreadHandle(poll, fd, callback);
}

/** Active while it is referenced: an unreferenced handle has nothing to watch (see Poller). */
class ThreadHandle implements LoopHandle {
  private readonly poll: PollInThread;
  private readonly fd: number;
  private readonly callback: () => void;
  /** In an ArrayBuffer, which V8 does not move during the call. */
  private readonly fds = new Int32Array(new ArrayBuffer(8));
  private active = false;
  private running = false;

  constructor(poll: PollInThread, fd: number, callback: () => void) {
    this.poll = poll;
    this.fd = fd;
    this.callback = callback;
  }

  ref(): void {
    this.active = true;
    if (!this.running) void this.run();
  }

  unref(): void {
    this.active = false;
  }

  close(): void {
    this.active = false;
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.active) {
      this.fds.set([this.fd, POLLIN]);
      const ready = await this.poll(this.fds, 1, SLICE_MS);
      if (ready > 0 && this.active) callSafely(this.callback);
      await nextTurn();
    }
    this.running = false;
  }
}

/** Whether a byte in a pipe is reported. */
export async function checkLoopPoll(
  watch: WatchReadable,
  pipe: { readonly read: number; readonly fill: () => void },
  withinMs = CHECK_MS,
): Promise<boolean> {
  let handle: LoopHandle | undefined;
  try {
    return await new Promise((resolve) => {
      // Timers run first in a turn of the loop: on a busy machine the descriptor may be ready and not reported yet.
      const fail = (): void => void setImmediate(() => setImmediate(() => resolve(false)));
      const late = setTimeout(fail, withinMs);
      handle = watch(pipe.read, () => {
        clearTimeout(late);
        resolve(true);
      });
      handle.ref();
      pipe.fill();
    });
  } catch {
    return false;
  } finally {
    handle?.close();
  }
}

/** koffi would drop an error of the callback and stop polling. */
function callSafely(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}
