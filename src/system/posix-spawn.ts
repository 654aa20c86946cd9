// Starting a program by posix_spawn: which descriptors, directory, session and signal state a child begins with.

import { constants } from 'node:fs';

import { type Binding, errnoName, PosixError } from './posix-library.ts';

const { O_RDWR, O_RDONLY } = constants;

/** The three descriptors of a child on pipes; without `input` it reads the null device. */
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
}

export function bindSpawn({ plain, threaded, address }: Binding) {
  /** These functions return the error number instead of setting errno. */
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
  /** Memory that only the pointers of a call lead to. */
  const inUse = new Set<object>();
  const actionsOf = fileActions(returning);
  const isUsual = plain('int sched_getscheduler(int thread)')(0) === SCHED_OTHER;
  const attributes = spawnAttributes(returning, isUsual);

  return {
    /**
     * Starts a session leader that holds descriptors 0, 1 and 2 only, with every signal at its default. The child can
     * have ended, and its end been told, before its number is known here. The thread that does it stands still until
     * the child has begun its program: a third of a millisecond, more on a busy machine, for ever on a dead network
     * disk. `here` is this thread, which saves waking another.
     */
    async spawn(
      { file, argv, env, commonEnv, cwd }: Spawn,
      stdio: PipeStdio | TerminalStdio,
      here = false,
    ): Promise<number> {
      // A small array's memory may be moved by V8; an ArrayBuffer's is not.
      const pid = new Int32Array(new ArrayBuffer(4));
      const variables = environment(env, commonEnv);
      const actions = actionsOf(stdio, cwd);
      inUse.add(variables);
      try {
        const words = [...argv, null];
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

const SCHED_OTHER = 0;

/** What is done in the child before its program begins. */
function fileActions(returning: (definition: string) => (...values: unknown[]) => void) {
  const initActions = returning('int posix_spawn_file_actions_init(void *actions)');
  const destroyActions = returning('int posix_spawn_file_actions_destroy(void *actions)');
  const addDup = returning('int posix_spawn_file_actions_adddup2(void *actions, int from, int to)');
  const addOpen = returning(
    'int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, int mode)',
  );
  const addChdir = returning(
    'int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)',
  );
  const addCloseFrom = returning(
    'int posix_spawn_file_actions_addclosefrom_np(void *actions, int from)',
  );

  const addStdio = (actions: Buffer, stdio: PipeStdio | TerminalStdio) => {
    if ('terminal' in stdio) {
      // A session leader's first terminal becomes its controlling one, if it is opened by name and without O_NOCTTY.
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
    // Descriptors that Node itself inherited without CLOEXEC would pass through otherwise.
    addCloseFrom(memory, 3);
    return memory;
  };
  return (stdio: PipeStdio | TerminalStdio, cwd: string) => {
    const memory = make(stdio, cwd);
    return { memory, destroy: () => destroyActions(memory) };
  };
}

/** `isUsual`: a child begins with the usual scheduling policy, whatever policy this process takes later (ADR 23). */
function spawnAttributes(
  returning: (definition: string) => (...values: unknown[]) => void,
  isUsual: boolean,
): Buffer {
  const [SETSIGDEF, SETSIGMASK, SETSCHEDULER, SETSID] = [0x04, 0x08, 0x20, 0x80];
  // glibc: sizeof(posix_spawnattr_t) is 336, sizeof(sigset_t) is 128.
  const attributes = Buffer.alloc(512);
  // Not by sigfillset: it leaves out 32 and 33, glibc's own, which posix_spawn then sets to "ignored" in the child.
  const allSignals = Buffer.alloc(128, 0xff);
  const noSignals = Buffer.alloc(128);
  returning('int posix_spawnattr_init(void *attributes)')(attributes);
  // Node ignores SIGPIPE, and what is ignored stays ignored across exec.
  returning('int posix_spawnattr_setsigdefault(void *attributes, void *set)')(
    attributes,
    allSignals,
  );
  returning('int posix_spawnattr_setsigmask(void *attributes, void *set)')(attributes, noSignals);
  returning('int posix_spawnattr_setschedpolicy(void *attributes, int policy)')(
    attributes,
    SCHED_OTHER,
  );
  returning('int posix_spawnattr_setflags(void *attributes, short flags)')(
    attributes,
    SETSID | SETSIGDEF | SETSIGMASK | (isUsual ? SETSCHEDULER : 0),
  );
  return attributes;
}

/** Strings in memory as C has them, each ended by a NUL, and where each begins. */
interface Block {
  readonly bytes: Buffer;
  readonly pointers: BigUint64Array;
}

/**
 * The environment as C wants it. To turn forty strings into memory takes longer than all else here; those that starts
 * have in common are turned once.
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
    // A small array's memory may be moved by V8; an ArrayBuffer's is not. One more for the NULL at its end.
    const pointers = new BigUint64Array(new ArrayBuffer(8 * (both + 1)));
    pointers.set(common.pointers);
    pointers.set(own.pointers, common.pointers.length);
    return { pointers, own };
  };
}
