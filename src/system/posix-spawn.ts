// Starts a program with posix_spawn: descriptors, directory, session and signal state of the child.

import { constants, readdirSync } from 'node:fs';

import type { Fence } from '../protocol/confinement/confinement.ts';
import { bindConfinedSpawn } from './confine/confined-spawn.ts';
import { type Binding, errnoName, PosixError } from './posix-library.ts';

const { O_RDWR, O_RDONLY } = constants;

/** The three descriptors of a child on pipes; without `input` it reads /dev/null. */
export interface PipeStdio {
  readonly input?: number | undefined;
  readonly output: number;
  readonly errors: number;
}
/** The terminal device that becomes descriptors 0, 1 and 2, and the controlling terminal. */
export interface TerminalStdio {
  readonly terminal: string;
}
export interface Spawn {
  readonly file: string;
  readonly argv: readonly string[];
  readonly env: readonly string[];
  readonly commonEnv?: readonly string[];
  readonly cwd: string;
  readonly fence?: Fence | undefined;
}

export function bindSpawn(binding: Binding) {
  const { plain, threaded, address } = binding;
  /** For functions that return the error number instead of setting errno. */
  const returning = (definition: string): ((...values: unknown[]) => void) => {
    const call = plain(definition);
    return (...values) => {
      const problem = call(...values);
      if (problem !== 0) throw new PosixError(errnoName(problem), 'posix_spawn');
    };
  };
  const definition =
    'int posix_spawn(void *pid, const char *path, void *actions, void *attributes, const char **argv, void *envp)';
  const [spawnNow, spawnElsewhere] = [plain(definition), threaded(definition)];
  const environment = environmentBlocks(address);
  /** Keeps memory alive that only native pointers refer to. */
  const inUse = new Set<object>();
  const actionsOf = fileActions(returning, binding);
  const attributes = spawnAttributes(returning);
  const fenced = bindConfinedSpawn(binding);

  return {
    /**
     * Starts a session leader that has descriptors 0, 1 and 2 only, and every signal at its default. The child may have
     * exited, and SIGCHLD arrived, before its pid is known here. The calling thread blocks until the child's exec: a
     * third of a millisecond, longer on a busy machine, for ever on a dead network mount. `here`: spawn in this thread
     * instead of libuv's pool, which saves waking another thread.
     */
    async spawn(
      { file, argv, env, commonEnv, cwd, fence }: Spawn,
      stdio: PipeStdio | TerminalStdio,
      here = false,
    ): Promise<number> {
      // V8 may move the memory of a small typed array, but not that of an ArrayBuffer.
      const pid = new Int32Array(new ArrayBuffer(4));
      const variables = environment(env, commonEnv);
      const words = [...argv, null];
      if (fence) {
        inUse.add(variables);
        const given = { file, argv: words, env: variables.pointers, cwd, fence, stdio };
        return fenced.spawnFenced(given, here).finally(() => inUse.delete(variables));
      }
      const actions = actionsOf(stdio, cwd);
      inUse.add(variables);
      try {
        const given = [pid, file, actions.memory, attributes, words, variables.pointers];
        const problem = here ? spawnNow(...given) : await spawnElsewhere(...given);
        if (problem !== 0) throw new PosixError(errnoName(problem), 'posix_spawn');
      } finally {
        actions.destroy();
        inUse.delete(variables);
      }
      return pid[0] ?? -1;
    },
  };
}

/** What the child does before exec. */
function fileActions(
  returning: (definition: string) => (...values: unknown[]) => void,
  binding: Binding,
) {
  const initActions = returning('int posix_spawn_file_actions_init(void *actions)');
  const destroyActions = returning('int posix_spawn_file_actions_destroy(void *actions)');
  const addDup = returning('int posix_spawn_file_actions_adddup2(void *actions, int from, int to)');
  const addOpen = returning(
    'int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, int mode)',
  );
  const addChdir = returning(
    'int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)',
  );
  const addCloseFrom = closeFrom(returning);
  if (!addCloseFrom) closeInheritedOnExec(binding);

  const addStdio = (actions: Buffer, stdio: PipeStdio | TerminalStdio) => {
    if ('terminal' in stdio) {
      // The first terminal that a session leader opens, without O_NOCTTY, becomes its controlling terminal.
      addOpen(actions, 0, stdio.terminal, O_RDWR, 0);
      addDup(actions, 0, 1);
      addDup(actions, 0, 2);
      return;
    }
    if (stdio.input === undefined) addOpen(actions, 0, '/dev/null', O_RDONLY, 0);
    else addDup(actions, stdio.input, 0);
    addDup(actions, stdio.output, 1);
    addDup(actions, stdio.errors, 2);
  };

  const make = (stdio: PipeStdio | TerminalStdio, cwd: string): Buffer => {
    // glibc: sizeof(posix_spawn_file_actions_t) is 80.
    const memory = Buffer.alloc(128);
    initActions(memory);
    addStdio(memory, stdio);
    addChdir(memory, cwd);
    // Closes descriptors that Node itself inherited without CLOEXEC.
    addCloseFrom?.(memory, 3);
    return memory;
  };
  return (stdio: PipeStdio | TerminalStdio, cwd: string) => {
    const memory = make(stdio, cwd);
    return { memory, destroy: () => destroyActions(memory) };
  };
}

/** Undefined where the C library does not have it, as musl. */
function closeFrom(returning: (definition: string) => (...values: unknown[]) => void) {
  try {
    return returning('int posix_spawn_file_actions_addclosefrom_np(void *actions, int from)');
  } catch {
    return undefined;
  }
}

/** Marks what this program has inherited. Node opens everything else with CLOEXEC, so once is enough. */
function closeInheritedOnExec({ trying }: Binding): void {
  const fcntl = trying('int fcntl(int fd, int command, ...)');
  const [F_SETFD, FD_CLOEXEC] = [2, 1];
  for (const fd of readdirSync('/proc/self/fd').map(Number))
    if (fd > 2) fcntl(fd, F_SETFD, 'int', FD_CLOEXEC);
}

function spawnAttributes(
  returning: (definition: string) => (...values: unknown[]) => void,
): Buffer {
  const [SETSIGDEF, SETSIGMASK, SETSID] = [0x04, 0x08, 0x80];
  // glibc: sizeof(posix_spawnattr_t) is 336, sizeof(sigset_t) is 128.
  const attributes = Buffer.alloc(512);
  // sigfillset leaves out glibc's own signals 32 and 33, which posix_spawn would then set to "ignored" in the child.
  const allSignals = Buffer.alloc(128, 0xff);
  const noSignals = Buffer.alloc(128);
  returning('int posix_spawnattr_init(void *attributes)')(attributes);
  // Node ignores SIGPIPE, and exec keeps ignored signals ignored.
  returning('int posix_spawnattr_setsigdefault(void *attributes, void *set)')(
    attributes,
    allSignals,
  );
  returning('int posix_spawnattr_setsigmask(void *attributes, void *set)')(attributes, noSignals);
  returning('int posix_spawnattr_setflags(void *attributes, short flags)')(
    attributes,
    SETSID | SETSIGDEF | SETSIGMASK,
  );
  return attributes;
}

/** NUL-terminated strings, and a pointer to each. */
interface Block {
  readonly bytes: Buffer;
  readonly pointers: BigUint64Array;
}

/**
 * Makes the environment of a C program. Converting forty strings takes longer than everything else in a spawn, so the
 * variables that starts have in common are converted once.
 */
function environmentBlocks(address: Binding['address']) {
  const known = new WeakMap<readonly string[], Block>();
  const none: readonly string[] = [];
  const make = (strings: readonly string[]): Block => {
    const bytes = Buffer.from(strings.map((string) => `${string}\0`).join(''));
    const pointers = new BigUint64Array(new ArrayBuffer(8 * strings.length));
    let at = strings.length === 0 ? 0n : address(bytes);
    for (const [index, string] of strings.entries()) {
      pointers[index] = at;
      at += BigInt(Buffer.byteLength(string) + 1);
    }
    return { bytes, pointers };
  };
  return (env: readonly string[], commonEnv = none) => {
    const common = known.get(commonEnv) ?? make(commonEnv);
    known.set(commonEnv, common);
    const own = make(env);
    const both = common.pointers.length + own.pointers.length;
    // In an ArrayBuffer, which V8 does not move. One more pointer for the final NULL.
    const pointers = new BigUint64Array(new ArrayBuffer(8 * (both + 1)));
    pointers.set(common.pointers);
    pointers.set(own.pointers, common.pointers.length);
    // Both blocks must live as long as the pointers to them.
    return { pointers, own, common };
  };
}
