// What can fail in a keeper: its system calls, and the errors that the kernel can give for each.
//
// Left out, because Node or libuv end the whole program by design and nothing of ours could prevent it: mmap, madvise and brk;
// errors of read and write beyond EINTR, since the same calls serve libuv's own wake-ups; epoll_wait beyond
// EINTR; ECHILD of wait4, which would need a second reaper in the same program; statx, with which Node looks at every
// file that it has just opened, where the kernel does not fail, and Node does not close it again. What a new thread
// calls while it begins is not seen by strace, which has only the threads that were there. Folders are listed in /proc
// alone, where the kernel can want for memory and for nothing else.

export interface FaultRow {
  readonly call: string;
  readonly errors: readonly string[];
  /** Only calls about the journals of the next starts. */
  readonly journals?: true;
  /** Of work, where more make no more of these calls. */
  readonly rounds?: number;
  /** No connection comes or goes meanwhile: libuv gives up when its own epoll_ctl fails. */
  readonly sameLinks?: true;
}

const row = (call: string, errors: string, more = {}): FaultRow => ({
  call,
  errors: errors.split(' '),
  ...more,
});

export const faultMatrix: readonly FaultRow[] = [
  row('openat', 'EMFILE ENFILE ENOMEM EINTR'),
  row('openat', 'EACCES EIO', { journals: true, rounds: 3 }),
  row('read', 'EINTR'),
  row('pread64', 'EINTR ENOMEM'),
  row('pread64', 'EIO', { journals: true, rounds: 3 }),
  row('pwrite64', 'ENOSPC EIO EINTR EDQUOT'),
  row('pwritev', 'ENOSPC EIO EINTR EDQUOT'),
  row('write', 'EINTR'),
  row('writev', 'EINTR EAGAIN'),
  row('ftruncate', 'EIO ENOSPC EINTR'),
  row('fdatasync', 'EIO ENOSPC EINTR'),
  row('rename', 'ENOSPC EACCES EIO'),
  row('unlink', 'EACCES EPERM EIO'),
  row('newfstatat', 'ENOMEM'),
  row('access', 'EACCES ENOMEM EIO'),
  row('readlink', 'EACCES ENOMEM EIO'),
  row('getdents64', 'ENOMEM'),
  row('pipe2', 'EMFILE ENFILE ENOMEM'),
  row('epoll_ctl', 'ENOMEM ENOSPC', { sameLinks: true }),
  row('epoll_wait', 'EINTR'),
  row('epoll_pwait', 'EINTR'),
  row('ppoll', 'ENOMEM EINTR'),
  row('ioctl', 'EIO ENOMEM EINTR'),
  row('fcntl', 'EMFILE EAGAIN EPERM', { sameLinks: true }),
  row('clone3', 'EAGAIN ENOMEM'),
  row('wait4', 'EINTR'),
  row('waitid', 'EINTR'),
  row('kill', 'EPERM ESRCH'),
  row('pidfd_open', 'EMFILE ENFILE ENOMEM EPERM'),
  row('pidfd_send_signal', 'EPERM ESRCH'),
  row('prlimit64', 'EPERM'),
  row('accept4', 'EMFILE ENFILE ENOMEM ECONNABORTED EINTR'),
  row('shutdown', 'ENOTCONN'),
];
