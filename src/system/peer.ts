// The process at the other end of a unix socket. Its number is believed only while the process is held.

import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Posix } from './posix.ts';
import { PosixError, type Binding } from './posix-library.ts';

const SOL_SOCKET = 1;
/** The same numbers on every architecture that posix.ts lists. */
const [SO_PEERCRED, SO_PEERPIDFD] = [17, 77];

export function bindPeers({ failing, trying }: Binding) {
  const definition = 'int getsockopt(int fd, int level, int name, void *value, void *bytes)';
  const [getsockopt, tryGetsockopt] = [failing(definition), trying(definition)];
  const value = new Int32Array(3);
  const bytes = new Uint32Array(1);

  return {
    /** Who connected. 0: a process that cannot be seen from this pid namespace. */
    peerPid(fd: number): number {
      bytes[0] = 12;
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, bytes);
      return value[0] ?? 0;
    },
    /** A pidfd of who connected; "gone" when it was reaped; undefined before Linux 6.5. */
    peerProcess(fd: number): number | 'gone' | undefined {
      bytes[0] = 4;
      const result = tryGetsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, value, bytes);
      if (result === 'ENOPROTOOPT') return undefined;
      if (result === 'EMFILE' || result === 'ENFILE') throw new PosixError(result, 'getsockopt');
      return typeof result === 'string' ? 'gone' : value[0];
    },
  };
}

/** Who connected, as long as it has not been released. */
export interface Peer {
  readonly pid: number;
  /** It has ended: what was read about its number meanwhile may be about another process. */
  hasEnded(): boolean;
  release(): void;
}

/** "outside": a process that this pid namespace does not see. "gone": it has ended already. */
export function holdPeer(posix: Posix, socket: Socket): Peer | 'outside' | 'gone' {
  const fd = descriptorOf(socket);
  if (fd < 0) return 'gone';
  const pid = posix.peerPid(fd);
  if (pid === 0) return 'outside';
  const pidfd = posix.peerProcess(fd) ?? openedNow(posix, pid);
  if (pidfd === 'gone') return 'gone';
  return {
    pid,
    hasEnded: () => posix.readability(pidfd).readable,
    release: () => closeSync(pidfd),
  };
}

/** Before Linux 6.5: the process that has the pid now. It is another one only if the peer has ended already. */
function openedNow(posix: Posix, pid: number): number | 'gone' {
  try {
    return posix.openProcess(pid);
  } catch (error) {
    if (error instanceof PosixError && error.errno === 'ESRCH') return 'gone';
    throw error;
  }
}

/** Node's own, which it does not document: the descriptor is nowhere else. */
function descriptorOf(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle?: { fd?: number } };
  return handle?.fd ?? -1;
}
