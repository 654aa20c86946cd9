// The local server as the command line finds, ends and starts it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { errnoOf } from '../base/disk.ts';
import type { ServerNote } from '../server/server-lock.ts';

/** Asks the server of a home to end, and waits until it has. Undefined when there is none. */
export async function endServer(home: string): Promise<ServerNote | undefined> {
  if (!existsSync(home)) return undefined;
  const { runningServer } = await import('../server/server-lock.ts');
  const server = runningServer(home);
  if (!server) return undefined;
  process.kill(server.pid, 'SIGTERM');
  await gone(server.pid);
  return server;
}

/** Starts a server in a session of its own; answers its first line. */
export async function startServer(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const server = spawn(process.execPath, [process.argv[1] ?? '', 'serve', '--json', ...args], {
    detached: true,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await Promise.race([once(server.stdout, 'data'), once(server, 'exit')])) as [
    unknown,
  ];
  server.stdout.destroy();
  server.unref();
  return String(line);
}

/** The server is not our child, so its end is not told to us: it is looked for. */
async function gone(pid: number): Promise<void> {
  const LOOK_MS = 20;
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch (error) {
      if (errnoOf(error) === 'ESRCH') return;
      throw error;
    }
    await new Promise((again) => setTimeout(again, LOOK_MS));
  }
}
