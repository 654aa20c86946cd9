// A server in a process of its own, which outlives whoever started it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ENGINE_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError, type ErrorShape } from '../protocol/errors.ts';

export interface StartedServer {
  readonly url: string;
  readonly pid: number;
}

/** Answers when it serves; a server that cannot start says why, and that is thrown. */
export async function startServerProcess(
  /** The program and what stands behind `serve`. */
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
  // Closed, not exited: what it said last may still be in the pipe.
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
