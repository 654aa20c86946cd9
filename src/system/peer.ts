// The process at the other end of a unix socket. Its pid is valid only while we hold a pidfd of it.

import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Posix } from './posix.ts';
import { PosixError, type Binding } from './posix-library.ts';
import { descriptorOf } from './socket-descriptor.ts';

const SOL_SOCKET = 1;
/** The same numbers on every architecture that posix.ts lists. */
const [SO_PEERCRED, SO_PEERPIDFD] = [17, 77];

export function bindPeers({ failing, trying }: Binding) {
  const definition = 'int getsockopt(int fd, int level, int name, void *value, void *bytes)';
  const [getsockopt, tryGetsockopt] = [failing(definition), trying(definition)];
  const value = new Int32Array(3);
  const bytes = new Uint32Array(1);

  return {
    /** The pid of the peer; 0 if our pid namespace does not show it. */
    peerPid(fd: number): number {
      bytes[0] = 12;
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, bytes);
      return value[0] ?? 0;
    },
    /** A pidfd of the peer; "gone" if it was reaped; undefined before Linux 6.5. */
    peerProcess(fd: number): number | 'gone' | undefined {
      bytes[0] = 4;
      const result = tryGetsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, value, bytes);
      if (result === 'ENOPROTOOPT') return undefined;
      if (result === 'EMFILE' || result === 'ENFILE') throw new PosixError(result, 'getsockopt');
      return typeof result === 'string' ? 'gone' : value[0];
    },
  };
}

/** The connected process, until it is released. */
export interface Peer {
  readonly pid: number;
  /** It has ended: what was read about its pid may be about another process. */
  hasEnded(): boolean;
  release(): void;
}

/** "outside": our pid namespace does not show it. "gone": it has ended already, or has closed its end and asked nothing. */
export function holdPeer(posix: Posix, socket: Socket): Peer | 'outside' | 'gone' {
  const fd = descriptorOf(posix, socket);
  if (fd === undefined || (posix.isHungUp(fd) && posix.readableBytes(fd) === 0)) return 'gone';
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
