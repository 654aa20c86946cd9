// Starting a program by posix_spawn: which descriptors, directory, session and signal state a child begins with.

import { constants } from 'node:fs';

import { type Binding, errnoName, PosixError } from './posix-library.ts';

const { O_RDWR, O_RDONLY } = constants;

/** The three descriptors of a child on pipes; without `input` it reads the null device. */
interface PipeStdio {
  readonly input?: number;
  readonly output: number;
  readonly errors: number;
}
/** The terminal device that becomes descriptors 0, 1 and 2, and the controlling terminal. */
interface TerminalStdio {
  readonly terminal: string;
}
export interface Spawn {
  readonly file: string;
  readonly argv: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly stdio: PipeStdio | TerminalStdio;
}

export function bindSpawn({ plain, threaded }: Binding) {
  /** These functions return the error number instead of setting errno. */
  const returning = (definition: string): ((...values: unknown[]) => void) => {
    const call = plain(definition);
    return (...values) => {
      const problem = call(...values);
      if (problem !== 0) throw new PosixError(errnoName(problem), 'posix_spawn');
    };
  };
  // Its thread stands still until the child has begun its program, a third of a millisecond and more on a busy machine.
  const spawnCall = threaded(
    'int posix_spawn(void *pid, const char *path, void *actions, void *attributes, const char **argv, const char **envp)',
  );
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
  const attributes = spawnAttributes(returning);

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

  return {
    /**
     * Starts a session leader that holds descriptors 0, 1 and 2 only, with every signal at its default. The child can
     * have ended, and its end been told, before its number is known here.
     */
    async spawn({ file, argv, env, cwd, stdio }: Spawn): Promise<number> {
      // glibc: sizeof(posix_spawn_file_actions_t) is 80.
      const actions = Buffer.alloc(128);
      // A small array's memory may be moved by V8; an ArrayBuffer's is not.
      const pid = new Int32Array(new ArrayBuffer(4));
      initActions(actions);
      try {
        addStdio(actions, stdio);
        addChdir(actions, cwd);
        // Descriptors that Node itself inherited without CLOEXEC would pass through otherwise.
        addCloseFrom(actions, 3);
        const words = [...argv, null];
        const problem = await spawnCall(pid, file, actions, attributes, words, [...env, null]);
        if (problem !== 0) throw new PosixError(errnoName(problem), 'posix_spawn');
      } finally {
        destroyActions(actions);
      }
      return pid[0] ?? -1;
    },
  };
}

function spawnAttributes(
  returning: (definition: string) => (...values: unknown[]) => void,
): Buffer {
  const [SETSIGDEF, SETSIGMASK, SETSID] = [0x04, 0x08, 0x80];
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
  returning('int posix_spawnattr_setflags(void *attributes, short flags)')(
    attributes,
    SETSID | SETSIGDEF | SETSIGMASK,
  );
  return attributes;
}
