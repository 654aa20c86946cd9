// An answer that the keeper gives itself: to a caller who waits at the server, on the caller's own connection. It has a
// copy of that connection's descriptor and writes one answer to it. So the caller is answered without waking the server
// first, and also when there is no server any more.

import { closeSync, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { HoldfastError } from '../protocol/errors.ts';
import type { Params } from '../protocol/operations.ts';
import { rendererNamed, type RendererName } from '../protocol/rendering/renderers.ts';
import { loadPosix, type Posix } from '../system/posix.ts';
import { isReserved } from '../system/descriptor-reserve.ts';
import { PosixError } from '../system/posix-library.ts';

/** What is waited for, and how its answer is written. */
export type WaitedFor = { readonly render: RendererName } & (
  | { readonly op: 'text'; readonly params: Params<'text'> }
  | { readonly op: 'wait'; readonly params: Params<'wait'> }
);

export type Delivery = WaitedFor & {
  readonly to: Place;
  /** Status and headers, each line with its end. */
  readonly head: string;
  /** The header that is true as long as the server reads on; otherwise the connection is closed behind the answer. */
  readonly kept: string;
};

/** A descriptor of another program, and the number of the socket that it meant: descriptors are used again. */
export interface Place {
  readonly pid: number;
  readonly fd: number;
  readonly inode: number;
}

/** Throws `unsupported` where it cannot be had (not allowed, in another world of processes, closed) or not be answered. */
export function takeConnection({ to, render }: Delivery): BorrowedSocket {
  const { pid, fd, inode } = to;
  const renderer = rendererNamed(render);
  if (!renderer) throw unsupported(`there is no renderer "${render}"`);
  const posix = loadPosix();
  if (!posix) throw unsupported('there are no system calls');
  let taken: number;
  try {
    taken = posix.takeDescriptor(pid, fd);
  } catch (error) {
    throw unsupported(error instanceof Error ? error.message : String(error));
  }
  const isSame = fstatSync(taken).ino === inode;
  // The server answers itself, then.
  const mayKeep = !isReserved(posix, taken);
  if (isSame && mayKeep) return new BorrowedSocket(taken, posix, renderer);
  closeSync(taken);
  throw unsupported(mayKeep ? 'another one has its number' : 'too many files are open');
}

function unsupported(reason: string): HoldfastError {
  return new HoldfastError('unsupported', `The caller's connection cannot be had: ${reason}.`);
}

export class BorrowedSocket {
  private readonly fd: number;
  private readonly posix: Posix;
  private readonly renderer: (result: unknown) => string;
  /** Has the descriptor, once it is there. */
  private socket: Socket | undefined;

  constructor(fd: number, posix: Posix, renderer: (result: unknown) => string) {
    this.fd = fd;
    this.posix = posix;
    this.renderer = renderer;
  }

  /** The server has gone: whether the caller does is now seen here alone. What else it says is for nobody. */
  watch(left: () => void): void {
    this.asSocket().once('close', left).resume();
  }

  /** Resolves when the kernel has all of it. A caller who has gone needs no answer. */
  async answer(result: unknown, { head, kept }: Delivery): Promise<void> {
    const body = this.renderer(result);
    const last = `Date: ${new Date().toUTCString()}\r\n${this.socket ? 'Connection: close\r\n' : kept}`;
    const length = `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    const bytes = Buffer.from(head + last + length + body);
    const taken = this.socket ? 0 : this.sendNow(bytes);
    if (taken < bytes.length) await this.sendRest(bytes.subarray(taken));
  }

  /** To be called in every case. This copy alone is closed: `end` would end the whole connection. */
  close(): void {
    if (this.socket) this.socket.destroy();
    else closeSync(this.fd);
  }

  private asSocket(): Socket {
    this.socket ??= new Socket({ fd: this.fd, readable: true, writable: true });
    // Told by 'close', which follows.
    return this.socket.on('error', () => undefined);
  }

  private sendNow(bytes: Buffer): number {
    try {
      const taken = this.posix.writeNow(this.fd, bytes);
      if (taken === 'closed') return bytes.length;
      return typeof taken === 'number' ? taken : 0;
    } catch (error) {
      if (error instanceof PosixError) return bytes.length;
      throw error;
    }
  }

  private sendRest(bytes: Buffer): Promise<void> {
    const socket = this.asSocket();
    return new Promise((resolve) => {
      socket.once('close', () => resolve());
      socket.write(bytes, () => resolve());
    });
  }
}
