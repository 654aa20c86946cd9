// An answer that the keeper gives itself: to a caller who waits at the server, on the caller's own connection. It has a
// copy of that connection's descriptor, writes one answer to it and never reads from it. So the caller is answered without
// waking the server first, and also when there is no server any more.

import { closeSync, fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { coderOutput } from '../protocol/coder-output.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { encodeGoJson } from '../protocol/go-json.ts';
import type { Results } from '../protocol/host-api.ts';
import type { Params } from '../protocol/operations.ts';
import { loadPosix, type Posix } from '../host/posix.ts';
import { PosixError } from '../host/posix-library.ts';

export interface Delivery {
  readonly text: Params<'text'>;
  readonly to: Connection;
  /** Status and headers, each line with its end. */
  readonly head: string;
  /** The header that is true as long as the server reads on; otherwise the connection is closed behind the answer. */
  readonly kept: string;
}

/** A descriptor of another program, and the number of the socket that it meant: descriptors are used again. */
export interface Connection {
  readonly pid: number;
  readonly fd: number;
  readonly inode: number;
}

/** Throws `unsupported` where it cannot be had: not allowed, in another world of processes, or closed. */
export function takeConnection({ pid, fd, inode }: Connection): TakenConnection {
  const posix = loadPosix();
  if (!posix) throw unsupported('there are no system calls');
  let taken: number;
  try {
    taken = posix.takeDescriptor(pid, fd);
  } catch (error) {
    throw unsupported(error instanceof Error ? error.message : String(error));
  }
  if (fstatSync(taken).ino === inode) return new TakenConnection(taken, posix);
  closeSync(taken);
  throw unsupported('another one has its number');
}

function unsupported(reason: string): HoldfastError {
  return new HoldfastError('unsupported', `The caller's connection cannot be had: ${reason}.`);
}

export class TakenConnection {
  private readonly fd: number;
  private readonly posix: Posix;
  private closed = false;

  constructor(fd: number, posix: Posix) {
    this.fd = fd;
    this.posix = posix;
  }

  /** Resolves when the kernel has all of it. A caller who has gone needs no answer. */
  async answer(view: Results['text'], { head, kept }: Delivery, stays: boolean): Promise<void> {
    const body = encodeGoJson(coderOutput(view));
    const last = `Date: ${new Date().toUTCString()}\r\n${stays ? kept : 'Connection: close\r\n'}`;
    const length = `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
    const bytes = Buffer.from(head + last + length + body);
    const taken = this.sendNow(bytes);
    if (taken < bytes.length) await this.sendRest(bytes.subarray(taken));
  }

  /** To be called in every case. */
  close(): void {
    if (!this.closed) closeSync(this.fd);
    this.closed = true;
  }

  private sendNow(bytes: Buffer): number {
    try {
      const taken = this.posix.writeNow(this.fd, bytes);
      return taken === 'closed' ? bytes.length : (taken ?? 0);
    } catch (error) {
      if (error instanceof PosixError) return bytes.length;
      throw error;
    }
  }

  private sendRest(bytes: Buffer): Promise<void> {
    this.closed = true;
    const socket = new Socket({ fd: this.fd, readable: false, writable: true });
    return new Promise((resolve) => {
      // Not `end`, which would end the whole connection and not this copy of it.
      socket.write(bytes, () => socket.destroy());
      socket.on('error', () => undefined);
      socket.once('close', () => resolve());
    });
  }
}
