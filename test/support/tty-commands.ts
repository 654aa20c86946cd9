// The `tty` commands as a script calls them, and their envelope: in this process (`runTty`), or as a program of its own
// (`startTty`) where that is the subject.
import { ttyMain } from '../../src/cli/tty/main.ts';
import { main, root, runHere, Running, type Ended } from './command-line.ts';
import { join } from 'node:path';

export { main };
export const shim = join(root, 'dist/cli/agent-tty.js');

export interface Reported {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly envelope: {
    readonly ok: boolean;
    readonly command: string;
    readonly timestamp: string;
    readonly result: never;
    readonly error: {
      code: string;
      message: string;
      retryable: boolean;
      details: Record<string, unknown>;
    };
  };
}

type Start = (script: string, args: readonly string[], env: NodeJS.ProcessEnv) => Promise<Reported>;

export const runTty: Start = async (script, args, env) => {
  const where = surroundings(env);
  if (script === main) return reported(await runHere(args, where));
  const home = { ...process.env, ...where.env };
  return reported(
    await runHere(args, where, (words, options) =>
      ttyMain(words, {
        ...options,
        home: home['AGENT_TTY_HOME'] ?? home['HOLDFAST_HOME'],
        program: 'agent-tty',
      }),
    ),
  );
};

export const startTty: Start = async (script, args, env) =>
  reported(await new Running(args, { script, ...surroundings(env) }).ended);

/** What is noted of homes stays in the one that the test throws away. */
function surroundings(env: NodeJS.ProcessEnv): { env: NodeJS.ProcessEnv; cwd: string } {
  const state = env['AGENT_TTY_HOME'] ?? env['HOLDFAST_HOME'];
  return { cwd: '/', env: { XDG_STATE_HOME: state, ...env } };
}

function reported({ code, stdout, stderr }: Ended): Reported {
  const envelope = (stdout.startsWith('{') ? JSON.parse(stdout) : undefined) as never;
  return { code, stdout, stderr, envelope };
}
