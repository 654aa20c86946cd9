// The descriptor of a Node socket. Node does not document it: a self-check, made once, compares it with a known one, and
// where it differs, callers do without.

import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Posix } from './posix.ts';

let checked: boolean | undefined;

/** Undefined for a closed socket, and on a Node that does not show descriptors. */
export function descriptorOf(posix: Posix, socket: Socket): number | undefined {
  return socketDescriptorsWork(posix) ? shownDescriptor(socket) : undefined;
}

export function socketDescriptorsWork(posix: Posix): boolean {
  checked ??= checkDescriptors(posix, shownDescriptor);
  return checked;
}

function shownDescriptor(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: { readonly fd?: unknown } };
  const fd = handle?.fd;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/** Makes a socket of a known descriptor and compares. */
export function checkDescriptors(
  posix: Posix,
  shown: (socket: Socket) => number | undefined,
): boolean {
  const [read, write] = posix.pipe();
  let socket: Socket | undefined;
  try {
    socket = new Socket({ fd: read, readable: true, writable: false });
    return shown(socket) === read;
  } catch {
    return false;
  } finally {
    if (socket) socket.destroy();
    else closeSync(read);
    closeSync(write);
  }
}
