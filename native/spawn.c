// Starts a program that is confined before its first instruction: in its own cgroup, with limits, another user, a Landlock
// domain and a seccomp filter. posix_spawn has no place for these, and a process can set most of them only for itself.
// As posix_spawn does, the child shares our memory until exec, and this thread waits until then. No C library: between
// clone and exec a child of a program with threads may call nothing that takes a lock.
//
// Built by scripts/native.mjs; system/confine/confined-spawn.ts fills in the request.

typedef unsigned long u64;
typedef long i64;

#if defined(__x86_64__)
enum { OPEN = 2, CLOSE = 3, SIGACTION = 13, SIGPROCMASK = 14, DUP2 = 33, CLONE = 56, EXECVE = 59, EXIT = 60, WAIT4 = 61,
  CHDIR = 80, SETSID = 112, SETGROUPS = 116, SETRESUID = 117, SETRESGID = 119, SCHED_SETSCHEDULER = 144, PRCTL = 157,
  PRLIMIT = 302, SECCOMP = 317 };
static inline i64 call(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e) {
  i64 r;
  register i64 r10 __asm__("r10") = d;
  register i64 r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return r;
}
#elif defined(__aarch64__)
enum { OPENAT = 56, CLOSE = 57, SIGACTION = 134, SIGPROCMASK = 135, DUP3 = 24, CLONE = 220, EXECVE = 221, EXIT = 93,
  WAIT4 = 260, CHDIR = 49, SETSID = 157, SETGROUPS = 159, SETRESUID = 147, SETRESGID = 149, SCHED_SETSCHEDULER = 119,
  PRCTL = 167, PRLIMIT = 261, SECCOMP = 277 };
static inline i64 call(i64 n, i64 a, i64 b, i64 c, i64 d, i64 e) {
  register i64 x8 __asm__("x8") = n;
  register i64 x0 __asm__("x0") = a;
  register i64 x1 __asm__("x1") = b;
  register i64 x2 __asm__("x2") = c;
  register i64 x3 __asm__("x3") = d;
  register i64 x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
#else
#error "no system calls are known for this architecture"
#endif
// The same numbers on every architecture.
enum { CLONE3 = 435, CLOSE_RANGE = 436, LANDLOCK_RESTRICT_SELF = 446 };

enum { VM = 0x100, VFORK = 0x4000, SIGCHLD_NUMBER = 17 };
#define INTO_CGROUP 0x200000000UL
enum { SIGNALS = 64, SET_BYTES = 8, RDWR = 2, NO_NEW_PRIVS = 38, SET_FILTER = 1 };
enum { EAGAIN_NUMBER = 11 };

struct limit {
  u64 resource, soft, hard;
};
/** Every field has 64 bits, so that its place is the same everywhere. -1 or 0: not asked for. */
struct request {
  i64 input, output, errors;
  const char *terminal;
  const char *folder;
  i64 group;
  const struct limit *limits;
  u64 limitCount;
  i64 uid, gid;
  const unsigned *groups;
  u64 groupCount;
  i64 dropsPrivileges, domain;
  const void *filter;
  u64 ignoredSignals;
  i64 usualScheduling;
  /** Becomes descriptor 3 of the child, which else gets 0 to 2 only. */
  i64 ready;
  /** Of a failure: its errno, and which of the steps below it was. */
  i64 error, step;
};
enum { STDIO = 1, FOLDER, LIMITS, USER, PRIVILEGES, DOMAIN, FILTER, EXEC };

/** Large enough for the kernel's struct sigaction on both architectures; all zero is the default action. */
struct action {
  u64 handler, flags, restorer, mask;
};

static i64 openPath(const char *path, int flags) {
#ifdef __x86_64__
  return call(OPEN, (i64)path, flags, 0, 0, 0);
#else
  return call(OPENAT, -100, (i64)path, flags, 0, 0);
#endif
}

static i64 duplicate(i64 from, i64 to) {
#ifdef __x86_64__
  return call(DUP2, from, to, 0, 0, 0);
#else
  return from == to ? to : call(DUP3, from, to, 0, 0, 0);
#endif
}

static i64 openAs(const char *path, int flags, i64 to) {
  i64 fd = openPath(path, flags);
  if (fd < 0 || fd == to) return fd;
  i64 result = duplicate(fd, to);
  call(CLOSE, fd, 0, 0, 0, 0);
  return result;
}

static i64 setStdio(const struct request *r) {
  i64 result;
  // The first terminal that a session leader opens becomes its controlling terminal.
  if (r->terminal) result = openAs(r->terminal, RDWR, 0);
  else result = r->input < 0 ? openAs("/dev/null", 0, 0) : duplicate(r->input, 0);
  if (result < 0) return result;
  result = duplicate(r->terminal ? 0 : r->output, 1);
  return result < 0 ? result : duplicate(r->terminal ? 0 : r->errors, 2);
}

static i64 setLimits(const struct request *r) {
  for (u64 at = 0; at < r->limitCount; at++) {
    i64 result = call(PRLIMIT, 0, (i64)r->limits[at].resource, (i64)&r->limits[at].soft, 0, 0);
    if (result < 0) return result;
  }
  return 0;
}

static i64 setUser(const struct request *r) {
  if (r->uid < 0) return 0;
  i64 result = call(SETGROUPS, (i64)r->groupCount, (i64)r->groups, 0, 0, 0);
  if (result >= 0) result = call(SETRESGID, r->gid, r->gid, r->gid, 0, 0);
  return result < 0 ? result : call(SETRESUID, r->uid, r->uid, r->uid, 0, 0);
}

static void resetSignals(u64 ignored) {
  struct action action = {0, 0, 0, 0};
  for (int signal = 1; signal <= SIGNALS; signal++) {
    action.handler = ignored >> (signal - 1) & 1;
    call(SIGACTION, signal, (i64)&action, 0, SET_BYTES, 0);
  }
}

static void fail(struct request *r, i64 step, i64 result) {
  r->step = step;
  r->error = -result;
  for (;;) call(EXIT, 127, 0, 0, 0, 0);
}

/** Runs on the stack of its parent, which waits. Never returns. */
static __attribute__((noinline, noreturn)) void runChild(
    struct request *r, const char *file, char *const *argv, char *const *env) {
  i64 result;
  resetSignals(r->ignoredSignals);
  call(SETSID, 0, 0, 0, 0, 0);
  int priority = 0;
  if (r->usualScheduling) call(SCHED_SETSCHEDULER, 0, 0, (i64)&priority, 0, 0);
  if ((result = setStdio(r)) < 0) fail(r, STDIO, result);
  if ((result = setLimits(r)) < 0) fail(r, LIMITS, result);
  if ((result = setUser(r)) < 0) fail(r, USER, result);
  // As that user: a folder that only root can enter is none of its folders.
  if ((result = call(CHDIR, (i64)r->folder, 0, 0, 0, 0)) < 0) fail(r, FOLDER, result);
  if (r->dropsPrivileges && (result = call(PRCTL, NO_NEW_PRIVS, 1, 0, 0, 0)) < 0) fail(r, PRIVILEGES, result);
  if (r->domain >= 0 && (result = call(LANDLOCK_RESTRICT_SELF, r->domain, 0, 0, 0, 0)) < 0) fail(r, DOMAIN, result);
  // By way of 4: a descriptor that has its number already would keep its flag, and be closed by exec.
  if (r->ready >= 0 && ((result = duplicate(r->ready, 4)) < 0 || (result = duplicate(4, 3)) < 0)) fail(r, STDIO, result);
  int first = r->ready >= 0 ? 4 : 3;
  if (call(CLOSE_RANGE, first, ~0U, 0, 0, 0) < 0)
    for (int fd = first; fd < 65536; fd++) call(CLOSE, fd, 0, 0, 0, 0);
  if (r->filter && (result = call(SECCOMP, SET_FILTER, 0, (i64)r->filter, 0, 0)) < 0) fail(r, FILTER, result);
  u64 none = 0;
  call(SIGPROCMASK, 2, (i64)&none, 0, SET_BYTES, 0);
  result = call(EXECVE, (i64)file, (i64)argv, (i64)env, 0, 0);
  fail(r, EXEC, result);
  __builtin_unreachable();
}

/** The new process's id, or an errno as a negative number. Of a failed child nothing is left. */
__attribute__((visibility("default"))) int hf_spawn(
    struct request *r, const char *file, char *const *argv, char *const *env) {
  u64 all = ~0UL, before;
  u64 arguments[11] = {0};
  arguments[0] = VM | VFORK | INTO_CGROUP;
  arguments[4] = SIGCHLD_NUMBER;
  arguments[10] = (u64)r->group;
  r->error = 0;
  // A handler of ours must not run in the child, in our memory.
  call(SIGPROCMASK, 0, (i64)&all, (i64)&before, SET_BYTES, 0);
  // clone where it is enough: default containers forbid clone3.
  i64 pid = r->group >= 0 ? call(CLONE3, (i64)arguments, sizeof arguments, 0, 0, 0)
                          : call(CLONE, VM | VFORK | SIGCHLD_NUMBER, 0, 0, 0, 0);
  if (pid == 0) runChild(r, file, argv, env);
  if (pid > 0 && r->error != 0) {
    while (call(WAIT4, pid, 0, 0, 0, 0) == -4) {
    }
    pid = -r->error;
  } else if (pid < 0) {
    r->step = 0;
    r->error = -pid;
  }
  call(SIGPROCMASK, 2, (i64)&before, 0, SET_BYTES, 0);
  return (int)pid;
}
