// The socket on a child's descriptor: reads into one buffer that is lent to the listener, and writes with one promise
// per write. Node calls it a socket; underneath is a pipe or the master of a terminal.

import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';

import { HoldfastError } from '../protocol/errors.ts';
import type { Posix } from './posix.ts';
import type { Reaper } from './reaper.ts';

/** What children share. One read buffer serves all: a read and its delivery are one step of the event loop. */
export interface ChildTools {
  readonly posix: Posix;
  readonly reaper: Reaper;
  readonly readBuffer: Buffer;
}

/** As large as a pipe is by default; a larger one gained nothing when measured. */
export function createReadBuffer(): Buffer {
  return Buffer.allocUnsafeSlow(65_536);
}

interface OutputSocketOptions {
  readonly fd: number;
  readonly readBuffer: Buffer;
  readonly writable: boolean;
  readonly received: (bytes: Buffer) => void;
  /** Called once when nothing more comes through this socket. The descriptor is closed then. */
  readonly over: () => void;
}

/** Takes over `fd`. Reading begins with the next turn of the loop. */
export function openOutput({
  fd,
  readBuffer,
  writable,
  received,
  over,
}: OutputSocketOptions): Socket {
  const options: SocketConstructorOpts & ConnectOpts = {
    fd,
    readable: true,
    writable,
    // Otherwise Node shuts the writing side at the end of reading, by a call that only real sockets know.
    allowHalfOpen: true,
    onread: {
      buffer: readBuffer,
      callback(count) {
        received(readBuffer.subarray(0, count));
        return true;
      },
    },
  };
  const socket = new Socket(options);
  let told = false;
  const tell = (): void => {
    if (told) return;
    told = true;
    socket.destroy();
    over();
  };
  // With `onread` the end is noticed only by a stream that flows.
  socket.on('end', tell).on('error', tell).on('close', tell).resume();
  return socket;
}

/** Takes over `fd`, the write end of a pipe. */
export function openInput(fd: number): Socket {
  const socket = new Socket({ fd, readable: false, writable: true });
  // The write in question is told by its own callback.
  socket.on('error', () => {});
  return socket;
}

export function stdinClosed(): HoldfastError {
  return new HoldfastError('stdin_closed', 'nothing reads the input of this process any more');
}

/** The writes of one child. */
export class ChildInput {
  private readonly socket: Socket;
  private waiting = 0;
  private ended = false;

  constructor(socket: Socket) {
    this.socket = socket;
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.ended || this.socket.destroyed) throw stdinClosed();
    if (bytes.length === 0) return;
    this.waiting += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        this.socket.write(bytes, (error) => {
          // Node reports the write that was under way as done when its socket is destroyed.
          if (error || this.socket.destroyed) reject(stdinClosed());
          else resolve();
        });
      });
    } finally {
      this.waiting -= 1;
      if (this.ended && this.waiting === 0) this.socket.destroy();
    }
  }

  /** Closes the pipe once everything written before has been taken. */
  end(): void {
    this.ended = true;
    if (this.waiting === 0) this.socket.destroy();
  }

  release(): void {
    this.ended = true;
    this.socket.destroy();
  }
}
