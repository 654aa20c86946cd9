// Listening: which addresses are loopback, which Host names an address has, and how a door is opened and closed.

import { rmSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import { isIP, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { resolve } from 'node:path';
import { errnoOf } from '../../base/disk.ts';
import { listeningPorts } from '../../system/ports.ts';
import { MAX_SOCKET_PATH_BYTES } from '../../system/private-folder.ts';
import { systemTable } from '../../system/proc-table.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import { BACKLOG } from '../../protocol/limits.ts';

export const DEFAULT_ADDRESS = '127.0.0.1';

export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

/** Every Host name under which this address may be called. */
export function hostNames(address: string): string[] {
  const loopback = ['127.0.0.1', 'localhost', '[::1]'];
  if (isLoopback(address)) return [...loopback, bracketed(address)];
  if (address !== '0.0.0.0' && address !== '::') return [bracketed(address)];
  // Numeric addresses only: a foreign page can make its own name resolve to this machine, but not a number.
  const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return [...loopback, ...own.map((entry) => bracketed(entry.address))];
}

export function bracketed(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

export function listenTcp(server: HttpServer, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(explainBindError(error, port, address)));
    server.listen({ port, host: address, backlog: BACKLOG }, () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

/** For a port in use, the error names the process that holds it, if it can be seen. */
function explainBindError(error: Error, port: number, address: string): Error {
  const errno = errnoOf(error);
  const where = `Port ${port} of ${address}`;
  if (errno === 'EADDRINUSE') {
    const holder = listeningPorts(systemTable.allPids()).find((listener) => listener.port === port);
    const by = holder
      ? ` by pid ${holder.pid} (${systemTable.commandOf(holder.pid).slice(0, 80)})`
      : '';
    return new HoldfastError('port_in_use', `${where} is in use${by}.`, { port, address });
  }
  if (errno === 'EACCES')
    return new HoldfastError('invalid_input', `${where} may not be bound by this user.`, { port });
  if (errno === 'EADDRNOTAVAIL')
    return new HoldfastError('invalid_input', `${address} is no address of this machine.`, {
      address,
    });
  return error;
}

/** The socket has mode 0600 from the moment it exists. */
export async function listenUnix(server: HttpServer, path: string): Promise<void> {
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // `listen` binds a path before it returns. The umask belongs to the whole process, so it is restored in the same
    // turn.
    const umask = process.umask(0o177);
    try {
      server.listen({ path, backlog: BACKLOG }, resolve);
    } finally {
      process.umask(umask);
    }
  });
}

export function closeDoor(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * A name without a port, with one, or with any (`:*`). Wildcards in names are refused: they would accept foreign names.
 */
export function checkedHost(host: string): string {
  if (/^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:\d{1,5}|:\*)?$/.test(host)) return host;
  throw new HoldfastError('invalid_input', `"${host}" is not a host name in lower case.`, {
    field: 'allowHosts',
  });
}

/** Undefined: there is none. */
export function socketPath(wanted: string | undefined, usual: string): string | undefined {
  if (wanted === 'none') return undefined;
  if (wanted === undefined) return usual;
  const path = resolve(wanted);
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
  const problem = `The path of a socket has at most ${MAX_SOCKET_PATH_BYTES} bytes: ${path} is longer.`;
  throw new HoldfastError('invalid_input', problem, { field: 'socket' });
}

/** Where a server binds, and who may reach it there. */
interface Binding {
  readonly address?: string;
  readonly openToAll?: boolean;
  readonly allowRemote?: boolean;
}

export function refuseUnsafeBind({
  address = DEFAULT_ADDRESS,
  openToAll,
  allowRemote,
}: Binding): void {
  if (isIP(address) === 0 && address !== 'localhost') {
    throw new HoldfastError('invalid_input', `"${address}" is not an IP address.`, {
      field: 'address',
    });
  }
  if (isLoopback(address)) return;
  if (openToAll)
    throw new HoldfastError('forbidden', 'Without tokens the server binds to loopback only.');
  if (!allowRemote) {
    throw new HoldfastError('forbidden', `${address} can be reached by others.`, {
      remedy: 'Put TLS in front of it, and allow it with --allow-remote.',
    });
  }
}
