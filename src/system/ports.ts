// The TCP ports that processes listen on, from the socket tables under /proc.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ListeningPort {
  readonly port: number;
  /** "127.0.0.1", "::" */
  readonly address: string;
  readonly pid: number;
}

interface Listener {
  readonly port: number;
  readonly address: string;
}

/** Part of a table row: no remote port, state TCP_LISTEN (10 in include/net/tcp_states.h). */
const LISTENS = ':0000 0A ';

/** Listening sockets by network namespace; each is read once. */
export class SocketTables {
  private readonly tables = new Map<string, ReadonlyMap<string, Listener>>();

  /** By inode, for the network namespace of the process. */
  of(pid: number): ReadonlyMap<string, Listener> {
    const space = link(`/proc/${pid}/ns/net`) ?? `of ${pid}`;
    const known = this.tables.get(space);
    if (known) return known;
    const table = new Map(listeners(pid));
    this.tables.set(space, table);
    return table;
  }
}

/** One row per listening socket. A socket that several processes share is listed with the first of them. */
export function listeningPorts(
  pids: Iterable<number>,
  tables = new SocketTables(),
): ListeningPort[] {
  const listed = new Set<string>();
  const ports: ListeningPort[] = [];
  for (const pid of pids) {
    const inodes = socketInodes(pid);
    if (inodes.length === 0) continue;
    const table = tables.of(pid);
    for (const inode of inodes) {
      const listener = table.get(inode);
      if (!listener || listed.has(inode)) continue;
      listed.add(inode);
      ports.push({ ...listener, pid });
    }
  }
  return ports;
}

/** Whether any process listens on the port in the network namespace of `netPid`. Cheap: reads no descriptors. */
export function isListening(port: number, netPid: number, tables = new SocketTables()): boolean {
  for (const listener of tables.of(netPid).values()) if (listener.port === port) return true;
  return false;
}

function* listeners(pid: number): Generator<[inode: string, Listener]> {
  for (const name of ['tcp', 'tcp6']) {
    // A busy machine has thousands of connections and few listeners: parse only the rows of listeners.
    const table = text(`/proc/${pid}/net/${name}`);
    for (let at = table.indexOf(LISTENS); at >= 0; at = table.indexOf(LISTENS, at + 1)) {
      const row = table.slice(table.lastIndexOf('\n', at) + 1, table.indexOf('\n', at));
      const fields = row.trim().split(/\s+/);
      const [host = '', port = ''] = fields[1]?.split(':') ?? [];
      const inode = fields[9];
      if (inode === undefined) continue;
      yield [inode, { port: Number.parseInt(port, 16), address: decodeAddress(host) }];
    }
  }
}

/** The kernel prints each 32-bit word of an address in this machine's byte order. */
function decodeAddress(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => [...Buffer.from(word, 'hex').swap32()]);
  if (bytes.length === 4) return bytes.join('.');
  const isMapped = bytes.slice(0, 12).join() === '0,0,0,0,0,0,0,0,0,0,255,255';
  if (isMapped) return `::ffff:${bytes.slice(12).join('.')}`;
  const groups = (Buffer.from(bytes).toString('hex').match(/.{4}/g) ?? []).join(':');
  // The URL parser writes an IPv6 address in its short form.
  return new URL(`http://[${groups}]`).hostname.slice(1, -1);
}

function socketInodes(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const target = link(`/proc/${pid}/fd/${fd}`);
      return target?.startsWith('socket:[') ? [target.slice('socket:['.length, -1)] : [];
    });
  } catch {
    // The process has ended, or we may not read it.
    return [];
  }
}

function link(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function text(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
