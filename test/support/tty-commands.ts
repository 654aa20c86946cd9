// The `tty` commands as a script calls them: one program per command, and its envelope.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const shim = join(root, 'dist/cli/agent-tty.js');
export const main = join(root, 'dist/cli/main.js');

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

export function startTty(
  script: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Reported> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: '/',
      // What is noted of homes stays in the one that the test throws away.
      env: {
        ...process.env,
        XDG_STATE_HOME: env['AGENT_TTY_HOME'] ?? env['HOLDFAST_HOME'],
        ...env,
      },
    });
    const out = { stdout: '', stderr: '' };
    for (const sink of ['stdout', 'stderr'] as const)
      child[sink].setEncoding('utf8').on('data', (text: string) => (out[sink] += text));
    child.once('error', reject);
    child.once('close', (code) => {
      const envelope = (out.stdout.startsWith('{') ? JSON.parse(out.stdout) : undefined) as never;
      resolve({ code, ...out, envelope });
    });
  });
}
