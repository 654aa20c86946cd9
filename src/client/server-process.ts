// Starts a server in a process of its own, which outlives its starter.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ENGINE_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError, type ErrorShape } from '../protocol/errors.ts';

export interface StartedServer {
  readonly url: string;
  readonly pid: number;
}

/** Resolves when it serves; throws the error of a server that cannot start. */
export async function startServerProcess(
  /** The program and the arguments after `serve`. */
  [main, ...args]: readonly [string, ...string[]],
  {
    env,
    stderr = 'ignore',
  }: { readonly env?: NodeJS.ProcessEnv; readonly stderr?: number | 'ignore' },
): Promise<StartedServer> {
  const server = spawn(process.execPath, [...ENGINE_FLAGS, main, 'serve', ...args, '--json'], {
    detached: true,
    stdio: ['ignore', 'pipe', stderr],
    ...(env && { env }),
  });
  const { stdout } = server;
  if (!stdout) throw new Error('a child without the pipe that was asked for');
  // 'close', not 'exit': its last message may still be in the pipe.
  const [first] = (await Promise.race([once(stdout, 'data'), once(server, 'close')])) as [unknown];
  stdout.destroy();
  server.unref();
  if (!Buffer.isBuffer(first))
    throw new HoldfastError('internal', `The server ended at once, with ${String(first)}.`);
  const said = JSON.parse(first.toString()) as StartedServer | { error: ErrorShape };
  if (!('error' in said)) return said;
  const { code, message, details } = said.error;
  throw new HoldfastError(code, message, { ...details });
}
