// Finds, ends and starts the local server.

import { closeSync, constants, existsSync } from 'node:fs';
import { whyStill } from '../../system/peer-watch.ts';
import { startServerProcess, type StartedServer } from '../../client/server-process.ts';
import type { LockNote } from '../../keeper/home-lock.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { LastServer, ServerNote } from '../../server/server-lock.ts';
import { endsWithin, signalHolder } from './process.ts';

/** After this a server that got SIGTERM is killed: it holds nothing that must survive. */
const LEAVE_MS = 3000;
/** A server that is just starting a keeper finishes that first. */
const START_MS = 5000;

export type LocalServer = Pick<ServerNote, 'url' | 'pid' | 'version' | 'startedAtMs'>;

/** The server of a home, where it answers and who it is; undefined when none runs. */
export async function localServer(home: string): Promise<LocalServer | undefined> {
  if (!existsSync(home)) return undefined;
  const { runningServer } = await import('../../server/server-lock.ts');
  const server = runningServer(home);
  if (!server) return undefined;
  const { url, pid, version, startedAtMs } = server;
  return { url, pid, ...(version !== undefined && { version, startedAtMs }) };
}

/** Ends the server of a home that serves, and waits until it has ended. Undefined when there is none. */
export async function endServer(home: string): Promise<ServerNote | undefined> {
  if (!existsSync(home)) return undefined;
  const { runningServer } = await import('../../server/server-lock.ts');
  return end(home, runningServer, LEAVE_MS);
}

/** As `endServer`; one that is only just starting is ended, too. */
export async function endAnyServer(home: string): Promise<LockNote | undefined> {
  if (!existsSync(home)) return undefined;
  const { presentServer, runningServer } = await import('../../server/server-lock.ts');
  return end(home, presentServer, runningServer(home) ? LEAVE_MS : START_MS);
}

async function end<Note extends LockNote>(
  home: string,
  find: (home: string) => Note | undefined,
  withinMs: number,
): Promise<Note | undefined> {
  const server = find(home);
  if (!server) return undefined;
  const { pid } = server;
  const send = (...signals: NodeJS.Signals[]): void =>
    signalHolder(server, `The server of ${home}`, () => find(home), ...signals);
  // A stopped server needs SIGCONT to get the SIGTERM.
  send('SIGTERM', 'SIGCONT');
  if (await endsWithin(pid, withinMs)) return server;
  send('SIGKILL');
  if (await endsWithin(pid, LEAVE_MS)) return server;
  const problem = `The server (pid ${pid}) was killed and is still there: ${whyStill(pid) ?? 'the kernel does not let it go'}.`;
  throw new HoldfastError('not_answering', problem, { pid });
}

/** The server of a home that crashed; undefined when none did. */
export async function lastServer(home: string): Promise<LastServer | undefined> {
  if (!existsSync(home)) return undefined;
  return (await import('../../server/server-lock.ts')).lastServer(home);
}

/** Starts a server in a session of its own; what Node itself prints there goes to the log, too. */
export async function startServer(
  home: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<StartedServer> {
  const { openHome, openPrivate } = await import('../../keeper/home.ts');
  // Not our own stderr: its reader would wait for the end of the server.
  const fd = openPrivate(openHome(home).serverLog, constants.O_WRONLY | constants.O_APPEND);
  try {
    const words = [process.argv[1] ?? '', ...args, '--home', home] as const;
    return await startServerProcess(words, { env, stderr: fd });
  } finally {
    closeSync(fd);
  }
}
