// Finding Holdfast: the local server, started if none is there, or a remote one by its address.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../base/built-file.ts';
import { SERVER_FLAGS } from '../base/engine-flags.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { Holdfast } from './holdfast.ts';
import { httpApi } from './http-api.ts';

export type ConnectTarget =
  | {
      /** The state directory of the local server; by default ~/.holdfast. */
      readonly home?: string;
      /** Environment of a server that has to be started. */
      readonly env?: NodeJS.ProcessEnv;
      /** Fail instead of starting one. */
      readonly startIfMissing?: boolean;
      /** Sees and starts only what belongs to this owner. */
      readonly owner?: string;
      readonly reconnectMs?: number;
    }
  | {
      readonly url: string;
      readonly token: string;
      readonly owner?: string;
      readonly reconnectMs?: number;
    };

export async function connect(target: ConnectTarget = {}): Promise<Holdfast> {
  const holdfast = new Holdfast(httpApi('url' in target ? target : local(target)));
  await holdfast.health();
  return holdfast;
}

function local(target: Exclude<ConnectTarget, { url: string }>): Parameters<typeof httpApi>[0] {
  const home = resolve(target.home ?? join(homedir(), '.holdfast'));
  return {
    socketPath: join(home, 'server.sock'),
    owner: target.owner,
    ...(target.reconnectMs !== undefined && { reconnectMs: target.reconnectMs }),
    revive: () => {
      if (target.startIfMissing !== false) return startLocalServer(home, target.env);
      return Promise.reject(
        new HoldfastError('keeper_unreachable', `No server is running for ${home}.`),
      );
    },
  };
}

/** In a session of its own: it outlives whoever needed it first. One that lost the race to start is no failure. */
async function startLocalServer(home: string, env: NodeJS.ProcessEnv | undefined): Promise<void> {
  const main = fileURLToPath(builtFile(import.meta.url, '../cli/main.js'));
  const server = spawn(
    process.execPath,
    [...SERVER_FLAGS, main, 'serve', '--home', home, '--json'],
    {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      ...(env && { env }),
    },
  );
  const ended = once(server, 'exit');
  await Promise.race([once(server.stdout, 'data'), ended]);
  server.stdout.destroy();
  server.unref();
}
