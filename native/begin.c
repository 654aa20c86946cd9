// The first program in a sandbox of bubblewrap, which becomes the command. bubblewrap was started with signals ignored, so the
// command gets the default actions back. Closing descriptor 3, the end of a pipe, says that the sandbox is ready.
//
// Arguments: the command's file and its argv. Built by scripts/native.mjs; host/limits/bubblewrap.ts starts it.

typedef unsigned long u64;
typedef long i64;

#if defined(__x86_64__)
enum { WRITE = 1, CLOSE = 3, SIGACTION = 13, EXECVE = 59, EXIT = 60 };
__asm__(".globl _start\n_start:\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call begin\n");
static inline i64 call(i64 n, i64 a, i64 b, i64 c, i64 d) {
  i64 r;
  register i64 r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return r;
}
#elif defined(__aarch64__)
enum { WRITE = 64, CLOSE = 57, SIGACTION = 134, EXECVE = 221, EXIT = 93 };
__asm__(".globl _start\n_start:\n  mov x0, sp\n  bl begin\n");
static inline i64 call(i64 n, i64 a, i64 b, i64 c, i64 d) {
  register i64 x8 __asm__("x8") = n;
  register i64 x0 __asm__("x0") = a;
  register i64 x1 __asm__("x1") = b;
  register i64 x2 __asm__("x2") = c;
  register i64 x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "no system calls are known for this architecture"
#endif

enum { SIGNALS = 64, SET_BYTES = 8, READY = 3, ERRORS = 2, NO_ENTRY = -2, NOT_FOUND = 127, NOT_EXECUTABLE = 126 };

static void say(const char *text) {
  u64 length = 0;
  while (text[length]) length++;
  call(WRITE, ERRORS, (i64)text, (i64)length, 0);
}

__attribute__((noreturn, used)) void begin(i64 *stack) {
  i64 count = stack[0];
  char **words = (char **)(stack + 1);
  // Large enough for the kernel's struct sigaction on both architectures; all zero is the default action.
  u64 action[4] = {0, 0, 0, 0};
  for (int signal = 1; signal <= SIGNALS; signal++) call(SIGACTION, signal, (i64)action, 0, SET_BYTES);
  call(CLOSE, READY, 0, 0, 0);
  i64 result = NO_ENTRY;
  if (count > 2) {
    result = call(EXECVE, (i64)words[1], (i64)(words + 2), (i64)(words + count + 1), 0);
    say("holdfast: ");
    say(words[1]);
    say(result == NO_ENTRY ? ": there is no such program in the sandbox\n" : ": the sandbox hides it, or it is not executable\n");
  }
  for (;;) call(EXIT, result == NO_ENTRY ? NOT_FOUND : NOT_EXECUTABLE, 0, 0, 0);
}
