// The local server as the command line finds, ends and starts it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../base/disk.ts';
import { SERVER_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError, type ErrorShape } from '../protocol/errors.ts';
import { readEntry } from '../host/proc-table.ts';
import type { ServerNote } from '../server/server-lock.ts';

/** Asks the server of a home to end, and waits until it has. Undefined when there is none. */
export async function endServer(home: string): Promise<ServerNote | undefined> {
  if (!existsSync(home)) return undefined;
  const { runningServer } = await import('../server/server-lock.ts');
  const server = runningServer(home);
  if (!server) return undefined;
  const { pid, startTicks } = server;
  if (startTicks !== undefined && readEntry(pid)?.startTicks !== startTicks) {
    const problem = `The server of ${home} runs in another container, as its process ${pid}: end it there.`;
    throw new HoldfastError('unsupported', problem);
  }
  process.kill(pid, 'SIGTERM');
  await gone(pid);
  return server;
}

export interface StartedServer {
  readonly url: string;
  readonly pid: number;
}

/** Starts a server in a session of its own; what it has to report goes to server.log in the home. */
export async function startServer(
  home: string,
  { port, again }: { readonly port: number; readonly again: readonly string[] },
  env: NodeJS.ProcessEnv,
): Promise<StartedServer> {
  const { openHome, openPrivate } = await import('../keeper/home.ts');
  const log = join(openHome(home).folder, 'server.log');
  // Not our own stderr: whoever reads that would wait for the end of the server.
  const fd = openPrivate(log, constants.O_WRONLY | constants.O_TRUNC);
  const args = ['serve', ...again, '--json', '--home', home, '--port', String(port)];
  const server = spawn(process.execPath, [...SERVER_FLAGS, process.argv[1] ?? '', ...args], {
    detached: true,
    env,
    stdio: ['ignore', 'pipe', fd],
  });
  closeSync(fd);
  const { stdout } = server;
  if (!stdout) throw new Error('a child without the pipe that was asked for');
  const [first] = (await Promise.race([once(stdout, 'data'), once(server, 'exit')])) as [unknown];
  stdout.destroy();
  server.unref();
  if (!Buffer.isBuffer(first))
    throw new HoldfastError('internal', `The server ended at once; see ${log}.`);
  const said = JSON.parse(first.toString()) as StartedServer | { error: ErrorShape };
  if (!('error' in said)) return said;
  throw new HoldfastError(said.error.code, said.error.message, { ...said.error.details });
}

/** Neither server nor keeper is our child, so its end is not told to us: it is looked for. */
export async function gone(pid: number): Promise<void> {
  const LOOK_MS = 20;
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch (error) {
      if (errnoOf(error) === 'ESRCH') return;
      throw error;
    }
    // Whoever started it may be waiting for us before he takes note of its end.
    if (readEntry(pid)?.state === 'Z') return;
    await new Promise((again) => setTimeout(again, LOOK_MS));
  }
}
