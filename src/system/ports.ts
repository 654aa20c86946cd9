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

/** In a row of the table: no remote port, and the state TCP_LISTEN (10 in include/net/tcp_states.h). */
const LISTENS = ':0000 0A ';

/** The listening sockets of each network namespace, read once per look. */
export class SocketTables {
  private readonly tables = new Map<string, ReadonlyMap<string, Listener>>();

  /** By inode, of the network that the process is in. */
  of(pid: number): ReadonlyMap<string, Listener> {
    const space = link(`/proc/${pid}/ns/net`) ?? `of ${pid}`;
    const known = this.tables.get(space);
    if (known) return known;
    const table = new Map(listeners(pid));
    this.tables.set(space, table);
    return table;
  }
}

/** One row per listening socket; one that several of the processes share is told with the first of them. */
export function listeningPorts(
  pids: Iterable<number>,
  tables = new SocketTables(),
): ListeningPort[] {
  const told = new Set<string>();
  const ports: ListeningPort[] = [];
  for (const pid of pids) {
    const inodes = socketInodes(pid);
    if (inodes.length === 0) continue;
    const table = tables.of(pid);
    for (const inode of inodes) {
      const listener = table.get(inode);
      if (!listener || told.has(inode)) continue;
      told.add(inode);
      ports.push({ ...listener, pid });
    }
  }
  return ports;
}

/** Whether anybody listens on the port, in the network that `netPid` is in. Looks at no descriptors: cheap. */
export function isListening(port: number, netPid: number, tables = new SocketTables()): boolean {
  for (const listener of tables.of(netPid).values()) if (listener.port === port) return true;
  return false;
}

function* listeners(pid: number): Generator<[inode: string, Listener]> {
  for (const name of ['tcp', 'tcp6']) {
    // A busy machine has thousands of rows of connections, and few that listen: only those are taken apart.
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

/** Every 32-bit word of an address is printed as a number of this machine's byte order. */
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
    // Gone, or not ours to look into.
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
