// System calls that Node does not offer. A failed call throws a PosixError with the errno's name. Where EAGAIN is an
// ordinary answer, the function returns undefined or false instead.

import { closeSync, constants } from 'node:fs';

import { type Binding, errnoName, openLibrary, PosixError } from './posix-library.ts';
import { bindLimits, bindScheduling } from './posix-limits.ts';
import { bindPeers } from './peer.ts';
import { bindLandlock } from './confine/landlock.ts';
import { bindSpawn } from './posix-spawn.ts';
import { decodeUsage, RUSAGE_WORDS, type Used } from './resources.ts';

// The structure layouts and ioctl numbers below hold for these 64-bit little-endian architectures.
const architectures = ['x64', 'arm64', 'riscv64', 'loong64'];
const O_CLOEXEC = 0x80000;
const { O_RDWR, O_NOCTTY, O_NONBLOCK } = constants;

function bindDescriptors({ failing, trying, threaded }: Binding) {
  const pipe2 = failing('int pipe2(void *fds, int flags)');
  const dup2 = failing('int dup2(int from, int to)');
  const fcntl = failing('int fcntl(int fd, int command, ...)');
  const ioctl = failing('int ioctl(int fd, unsigned long request, ...)');
  const pollCall = failing('int poll(void *fds, unsigned long count, int timeoutMs)');
  const readCall = trying('long read(int fd, void *buffer, size_t count)');
  const writeCall = trying('long write(int fd, void *buffer, size_t count)');
  const fadvise = threaded('int posix_fadvise(int fd, int64_t from, int64_t bytes, int advice)');
  const POSIX_FADV_DONTNEED = 4;
  const [F_SETFL, F_DUPFD_CLOEXEC, FIONREAD] = [4, 1030, 0x541b];
  const [POLLIN, POLLHUP] = [1, 0x10];
  const pair = new Int32Array(2);

  return {
    /** Read end, write end. */
    pipe(): [number, number] {
      pipe2(pair, O_CLOEXEC);
      return [pair[0] ?? -1, pair[1] ?? -1];
    },
    /** Sets O_NONBLOCK on this end of a pipe only. */
    unblock(fd: number): void {
      fcntl(fd, F_SETFL, 'int', O_NONBLOCK);
    },
    duplicate: (fd: number): number => fcntl(fd, F_DUPFD_CLOEXEC, 'int', 3),
    /** Makes a standard stream another file. */
    redirect: (from: number, to: number): void => void dup2(from, to),
    /** Bytes in a pipe now. On a terminal, bytes that the kernel has not moved to the reader are not counted. */
    readableBytes(fd: number): number {
      ioctl(fd, FIONREAD, 'void *', pair);
      return pair[0] ?? 0;
    },
    /**
     * `readable`: a read would return bytes. `over`: hung up and empty. Exact for both ends of a terminal: the kernel
     * first moves on what was written to the other end (n_tty_poll).
     */
    readability(fd: number): { readable: boolean; over: boolean } {
      pair.set([fd, POLLIN]);
      pollCall(pair, 1, 0);
      const happened = (pair[1] ?? 0) >>> 16;
      const readable = (happened & POLLIN) !== 0;
      return { readable, over: !readable && (happened & POLLHUP) !== 0 };
    },
    /** The other end of a socket is closed, so that nothing reaches it. */
    isHungUp(fd: number): boolean {
      pair.set([fd, 0]);
      pollCall(pair, 1, 0);
      return (((pair[1] ?? 0) >>> 16) & POLLHUP) !== 0;
    },
    /** Evicts synced pages from the page cache. Advice: the kernel may decline. */
    async evictPages(fd: number): Promise<void> {
      await fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    },
    /** From a non-blocking descriptor: the count, 0 at the end, undefined if nothing is there yet. */
    readNow(fd: number, buffer: Buffer): number | undefined {
      const count = readCall(fd, buffer, buffer.length);
      if (typeof count === 'number') return count;
      if (count === 'EAGAIN') return undefined;
      // The master of a terminal that no process holds open returns EIO after the last byte.
      if (count === 'EIO') return 0;
      throw new PosixError(count, 'read');
    },
    /** To a non-blocking descriptor: the count, undefined if it is full. */
    writeNow(fd: number, bytes: Buffer): number | 'closed' | 'no_memory' | undefined {
      const count = writeCall(fd, bytes, bytes.length);
      if (typeof count === 'number') return count;
      if (count === 'EAGAIN') return undefined;
      if (count === 'EPIPE' || count === 'EIO') return 'closed';
      if (count === 'ENOMEM') return 'no_memory';
      throw new PosixError(count, 'write');
    },
  };
}

function bindEpoll({ failing, trying, watch }: Binding) {
  const create = failing('int epoll_create1(int flags)');
  const control = failing('int epoll_ctl(int epoll, int operation, int fd, void *event)');
  const wait = trying('int epoll_wait(int epoll, void *events, int count, int timeoutMs)');
  const [ADD, DELETE, MODIFY] = [1, 2, 3];
  const [EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP] = [1, 4, 8, 0x10];
  // struct epoll_event is packed on x86-64 only.
  const [size, dataAt] = process.arch === 'x64' ? [12, 4] : [16, 8];
  const event = Buffer.alloc(16);
  const atOnce = 64;
  const events = Buffer.alloc(size * atOnce);

  return {
    watch,
    openEpoll: (): number => create(O_CLOEXEC),
    /** Watches these directions of `fd`. */
    epollSet(epoll: number, fd: number, to: { read: boolean; write: boolean; known: boolean }) {
      event.writeUInt32LE((to.read ? EPOLLIN : 0) | (to.write ? EPOLLOUT : 0));
      event.writeInt32LE(fd, dataAt);
      control(epoll, to.known ? MODIFY : ADD, fd, event);
    },
    epollRemove(epoll: number, fd: number): void {
      control(epoll, DELETE, fd, event);
    },
    /** Reports up to 64 ready descriptors, without waiting. */
    epollWait(
      epoll: number,
      onReady: (fd: number, happened: { read: boolean; write: boolean; hangUp: boolean }) => void,
    ): void {
      const count = wait(epoll, events, atOnce, 0);
      if (typeof count === 'string') throw new PosixError(count, 'epoll_wait');
      for (let at = 0; at < count * size; at += size) {
        const happened = events.readUInt32LE(at);
        const hangUp = (happened & (EPOLLHUP | EPOLLERR)) !== 0;
        onReady(events.readInt32LE(at + dataAt), {
          read: hangUp || (happened & EPOLLIN) !== 0,
          write: hangUp || (happened & EPOLLOUT) !== 0,
          hangUp,
        });
      }
    },
  };
}

function bindLocks({ failing, trying }: Binding) {
  const definition = 'int flock(int fd, int operation)';
  const [flock, failingFlock] = [trying(definition), failing(definition)];
  const [LOCK_EX, LOCK_NB, LOCK_UN] = [2, 4, 8];

  return {
    /** False if another open file holds the lock. */
    tryLock(fd: number): boolean {
      const result = flock(fd, LOCK_EX | LOCK_NB);
      if (typeof result === 'string' && result !== 'EAGAIN') throw new PosixError(result, 'flock');
      return result === 0;
    },
    /** Blocks the event loop until it has the lock. Not in libuv's pool, because `process.exit` waits for its threads. */
    lock(fd: number): void {
      failingFlock(fd, LOCK_EX);
    },
    /** Releases it for every descriptor of that open file, also in other processes. */
    unlock(fd: number): void {
      failingFlock(fd, LOCK_UN);
    },
  };
}

function bindTerminals({ failing, plain }: Binding) {
  const openpt = failing('int posix_openpt(int flags)');
  const grantpt = failing('int grantpt(int fd)');
  const unlockpt = failing('int unlockpt(int fd)');
  const ptsname = plain('int ptsname_r(int fd, void *buffer, size_t length)');
  const ioctl = failing('int ioctl(int fd, unsigned long request, ...)');
  const tcgetattr = failing('int tcgetattr(int fd, void *termios)');
  const [TIOCSWINSZ, TIOCGPGRP] = [0x5414, 0x540f];
  const [ICANON, ECHO] = [0o2, 0o10];
  const group = new Int32Array(1);
  // struct termios: four 32-bit flag words, the line discipline, then c_cc, whose VEOF has index 4.
  const [localFlagsAt, endOfFileAt] = [12, 21];
  const termios = Buffer.alloc(64);
  const nameBuffer = Buffer.alloc(128);

  return {
    /** Opens a pseudoterminal: its non-blocking master and the name of its device. */
    openTerminal(): { master: number; name: string } {
      const master = openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
      try {
        grantpt(master);
        unlockpt(master);
        const problem = ptsname(master, nameBuffer, nameBuffer.length);
        if (problem !== 0) throw new PosixError(errnoName(problem), 'ptsname_r');
      } catch (error) {
        closeSync(master);
        throw error;
      }
      return { master, name: nameBuffer.toString('utf8', 0, nameBuffer.indexOf(0)) };
    },
    setTerminalSize(fd: number, cols: number, rows: number): void {
      ioctl(fd, TIOCSWINSZ, 'void *', new Uint16Array([rows, cols, 0, 0]));
    },
    /** Foreground process group of the terminal, by its master; undefined if there is none. */
    foregroundGroup(fd: number): number | undefined {
      ioctl(fd, TIOCGPGRP, 'void *', group);
      return group[0] || undefined;
    },
    /** Whether it echoes, whether it is in canonical mode, and its end-of-file character. */
    terminalMode(fd: number): { echoes: boolean; lines: boolean; endOfFile: number } {
      tcgetattr(fd, termios);
      const flags = termios.readUInt32LE(localFlagsAt);
      return {
        echoes: (flags & ECHO) !== 0,
        lines: (flags & ICANON) !== 0,
        endOfFile: termios.readUInt8(endOfFileAt),
      };
    },
  };
}

function bindChildren({ failing, trying }: Binding) {
  const wait4 = failing('int wait4(int pid, void *status, int options, void *usage)');
  const waitid = trying('int waitid(int kind, int id, void *info, int options)');
  const prctl = failing('int prctl(int option, ...)');
  const [WNOHANG, WEXITED, WNOWAIT, P_ALL] = [1, 4, 0x01000000, 0];
  const PR_SET_CHILD_SUBREAPER = 36;
  // siginfo_t: si_pid is the fifth 32-bit word on 64-bit systems.
  const siginfo = new Int32Array(32);
  const pidWord = 4;
  const status = new Int32Array(1);
  const rusage = new BigInt64Array(RUSAGE_WORDS);
  const clockGettime = failing('int clock_gettime(int clock, void *time)');
  const CLOCK_BOOTTIME = 7;
  const time = new BigInt64Array(2);

  return {
    /** Hundredths of a second since boot, the clock of `startTicks` in proc-table.ts. */
    bootTicks(): number {
      clockGettime(CLOCK_BOOTTIME, time);
      return Number(time[0]) * 100 + Math.floor(Number(time[1]) / 1e7);
    },
    /** Reaps a child that has ended: its wait status and what it used; undefined while it runs. ECHILD: not our child. */
    wait(pid: number): { readonly status: number; readonly used: Used } | undefined {
      if (wait4(pid, status, WNOHANG, rusage) === 0) return undefined;
      return { status: status[0] ?? 0, used: decodeUsage(rusage) };
    },
    /** The pid of some zombie child, without reaping it. */
    peekEnded(): number | undefined {
      siginfo.fill(0);
      const result = waitid(P_ALL, 0, siginfo, WEXITED | WNOHANG | WNOWAIT);
      if (result === 'ECHILD') return undefined;
      if (typeof result === 'string') throw new PosixError(result, 'waitid');
      return siginfo[pidWord] || undefined;
    },
    /** Orphaned descendants are reparented to this process. */
    setSubreaper(on: boolean): void {
      prctl(PR_SET_CHILD_SUBREAPER, 'unsigned long', on ? 1 : 0);
    },
  };
}

/** Calls on processes by pidfd, which always means the same process, even after its pid is reused. */
function bindProcesses({ failing, trying, plain }: Binding) {
  const exit = plain('void _exit(int status)');
  const fcntl = failing('int fcntl(int fd, int command, ...)');
  const F_SETFD = 2;
  const execve = failing('int execve(const char *file, const char **argv, const char **env)');
  const syscall = failing('long syscall(long number, ...)');
  const prctl = trying('int prctl(int option, ...)');
  const ppoll = failing('int ppoll(void *fds, unsigned long count, void *time, void *signals)');
  // The numbers are the same on every architecture above; glibc has wrappers only from 2.36 on.
  const [SYS_PIDFD_SEND_SIGNAL, SYS_PIDFD_OPEN, SYS_PIDFD_GETFD] = [424, 434, 438];
  const [PR_SET_DUMPABLE, PR_SET_PTRACER] = [4, 0x59616d61];
  const [POLLIN, POLLPRI, POLLERR] = [1, 2, 8];
  const polled = new Int32Array(2);
  const time = new BigInt64Array(2);

  const openProcess = (pid: number): number => syscall(SYS_PIDFD_OPEN, 'long', pid, 'long', 0);
  const withProcess = <T>(pid: number, use: (pidfd: number) => T): T => {
    const pidfd = openProcess(pid);
    try {
      return use(pidfd);
    } finally {
      closeSync(pidfd);
    }
  };

  return {
    openProcess,
    signalProcess(pidfd: number, signal: number): void {
      syscall(SYS_PIDFD_SEND_SIGNAL, 'long', pidfd, 'long', signal, 'void *', null, 'long', 0);
    },
    /** Blocks until a process has ended, for at most `us` microseconds, so that it can run on a busy machine. */
    awaitEnd(pid: number, us: number): void {
      withProcess(pid, (pidfd) => {
        [polled[0], polled[1]] = [pidfd, POLLIN];
        [time[0], time[1]] = [0n, BigInt(us) * 1000n];
        ppoll(polled, 1, time, null);
      });
    },
    /** For a descriptor of /proc/self/mountinfo: whether it has changed since the last call. */
    hasNews(fd: number): boolean {
      [polled[0], polled[1]] = [fd, POLLPRI];
      [time[0], time[1]] = [0n, 0n];
      ppoll(polled, 1, time, null);
      return ((polled[1] >> 16) & POLLERR) !== 0;
    },
    /** Exits now. `process.exit` would wait for every thread of libuv's pool, even for one that hangs. */
    exit(code: number): void {
      exit(code);
    },
    /** Runs another program in place of this one, with the same pid and standard streams. Returns only by an error. */
    replaceProgram(file: string, argv: readonly string[], env: readonly string[]): never {
      // Node marks all its descriptors as close-on-exec, these too.
      for (const fd of [0, 1, 2]) fcntl(fd, F_SETFD, 'int', 0);
      execve(file, [...argv, null], [...env, null]);
      throw new Error('execve has returned');
    },
    /**
     * Programs of the same user can no longer trace this one, nor read its memory, environment and descriptors under /proc.
     * It leaves no core dump. Its files under /proc belong to root from now on.
     */
    forbidTracing(): void {
      prctl(PR_SET_DUMPABLE, 'unsigned long', 0);
    },
    /** Lets a process take our descriptors where only ancestors may (the security module Yama). */
    allowTaking(pid: number): void {
      prctl(PR_SET_PTRACER, 'unsigned long', pid);
    },
    /** Duplicates a descriptor of another process of the same user; EPERM or ENOSYS where that is not allowed. */
    takeDescriptor: (pid: number, fd: number): number =>
      withProcess(pid, (pidfd) => syscall(SYS_PIDFD_GETFD, 'long', pidfd, 'long', fd, 'long', 0)),
  };
}

function bind() {
  const binding = openLibrary();
  return {
    ...bindDescriptors(binding),
    ...bindLimits(binding),
    ...bindScheduling(binding),
    ...bindEpoll(binding),
    ...bindPeers(binding),
    ...bindLocks(binding),
    ...bindTerminals(binding),
    ...bindSpawn(binding),
    ...bindChildren(binding),
    ...bindProcesses(binding),
    ...bindLandlock(binding),
  };
}

export type Posix = ReturnType<typeof bind>;

let loaded: { readonly posix: Posix } | { readonly problem: string } | undefined;

function load(): { readonly posix: Posix } | { readonly problem: string } {
  if (process.platform !== 'linux') return { problem: `not on ${process.platform}` };
  if (!architectures.includes(process.arch)) return { problem: `not on ${process.arch}` };
  try {
    return { posix: bind() };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Undefined if koffi or a function is missing; `posixProblem` then has the reason. */
export function loadPosix(): Posix | undefined {
  loaded ??= load();
  return 'posix' in loaded ? loaded.posix : undefined;
}

export function posixProblem(): string | undefined {
  loaded ??= load();
  return 'problem' in loaded ? loaded.problem : undefined;
}
