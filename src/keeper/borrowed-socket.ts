// The keeper answers a client of the server on the client's own connection: it duplicates the descriptor of that connection
// and writes one answer to it, or a stream. So the client is answered without waking the server, and even after the server
// has died.

import { closeSync, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { HoldfastError } from '../protocol/errors.ts';
import type { Params } from '../protocol/operations.ts';
import {
  rendererNamed,
  streamNamed,
  type RendererName,
  type StreamName,
  type StreamParams,
} from '../protocol/rendering/renderers.ts';
import { loadPosix, type Posix } from '../system/posix.ts';
import { isReserved } from '../system/descriptor-reserve.ts';
import { PosixError } from '../system/posix-library.ts';

/** The operation to wait for, and the renderer of its answer. */
export type WaitedFor =
  | ({ readonly render: RendererName } & (
      | { readonly op: 'text'; readonly params: Params<'text'> }
      | { readonly op: 'wait'; readonly params: Params<'wait'> }
      | { readonly op: 'start'; readonly params: Params<'start'> }
    ))
  | FollowedProcess;

/** The events of a process, as a chunked body, until the stream says that it is complete. */
export interface FollowedProcess {
  readonly op: 'follow';
  readonly render: StreamName;
  readonly params: { readonly id: string } & StreamParams;
}

export type Delivery = WaitedFor & {
  readonly to: RemoteDescriptor;
  /** Status line and headers, each with its line end. */
  readonly head: string;
  /** Keep-alive headers, used while the server lives; otherwise the connection is closed after the answer. */
  readonly kept: string;
};

/** A descriptor of another process, with the inode of its socket, because descriptors are reused. */
export interface RemoteDescriptor {
  readonly pid: number;
  readonly fd: number;
  readonly inode: number;
}

/** Throws `unsupported` if the descriptor cannot be taken (not permitted, another pid namespace, closed) or rendered. */
export function takeConnection({ to, render }: Delivery): BorrowedSocket {
  const { pid, fd, inode } = to;
  if (!rendererNamed(render) && !streamNamed(render))
    throw unsupported(`there is no renderer "${render}"`);
  const posix = loadPosix();
  if (!posix) throw unsupported('there are no system calls');
  let taken: number;
  try {
    taken = posix.takeDescriptor(pid, fd);
  } catch (error) {
    throw unsupported(error instanceof Error ? error.message : String(error));
  }
  const isSame = fstatSync(taken).ino === inode;
  // Otherwise the server answers itself.
  const mayKeep = !isReserved(posix, taken);
  if (isSame && mayKeep) return new BorrowedSocket(taken, posix);
  closeSync(taken);
  throw unsupported(mayKeep ? 'its descriptor was reused' : 'too many files are open');
}

function unsupported(reason: string): HoldfastError {
  return new HoldfastError('unsupported', `The caller's connection cannot be taken: ${reason}.`);
}

export class BorrowedSocket {
  private readonly fd: number;
  private readonly posix: Posix;
  /** Owns the descriptor once it exists. */
  private socket: Socket | undefined;

  constructor(fd: number, posix: Posix) {
    this.fd = fd;
    this.posix = posix;
  }

  /** The server has died: from now on we detect that the client disconnects. Its input is discarded. */
  watch(left: () => void): void {
    this.asSocket().once('close', left).resume();
  }

  /** Resolves when the kernel has all of the answer, or the client has disconnected. */
  async answer(result: unknown, delivery: Delivery): Promise<void> {
    const body = rendererNamed(delivery.render)?.(result) ?? '';
    const length = `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    await this.send(Buffer.from(this.headOf(delivery) + length + body));
  }

  /** The head of an answer, without the line that tells its length. */
  headOf({ head, kept }: Pick<Delivery, 'head' | 'kept'>): string {
    return `${head}Date: ${new Date().toUTCString()}\r\n${this.socket ? 'Connection: close\r\n' : kept}`;
  }

  /** Resolves when the kernel has all of it, or the client has disconnected. */
  async send(bytes: Buffer): Promise<void> {
    const taken = this.socket ? 0 : this.sendNow(bytes);
    if (taken < bytes.length) await this.sendRest(bytes.subarray(taken));
  }

  /** Always call it. Closes our duplicate only: `end` would shut down the connection itself. */
  close(): void {
    if (this.socket) this.socket.destroy();
    else closeSync(this.fd);
  }

  private asSocket(): Socket {
    this.socket ??= new Socket({ fd: this.fd, readable: true, writable: true });
    // 'close' follows and handles it.
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
      const done = (): void => {
        socket.off('close', done);
        resolve();
      };
      socket.once('close', done);
      if (socket.destroyed) done();
      else socket.write(bytes, done);
    });
  }
}
