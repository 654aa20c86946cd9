// Connects to the local server, which is started if necessary, or to a remote one by its URL.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../base/workers/built-file.ts';
import { inheritedEnvironment } from '../base/inherited-environment.ts';
import { HoldfastError } from '../protocol/errors.ts';
import { SERVER_SOCKET, socketIn } from '../system/private-folder.ts';
import { Holdfast, type StartDefaults } from './holdfast.ts';
import type { LeaseOptions } from './connection-lease.ts';
import { httpApi } from './http-api.ts';
import { startServerProcess } from './server-process.ts';

export type ConnectTarget = LeaseOptions & Destination;

type Destination =
  | {
      /** The state directory of the local server; by default $HOLDFAST_HOME, else ~/.holdfast. */
      readonly home?: string;
      /** The environment of this caller, and of a server that has to be started; by default this process's. */
      readonly env?: NodeJS.ProcessEnv;
      /**
       * What processes inherit by default. caller: environment and working directory of this process, as with `holdfast
       * run`. host: those of the keeper.
       */
      readonly inherit?: 'caller' | 'host';
      /** False: fail instead of starting a server. */
      readonly startIfMissing?: boolean;
      /** Sees and starts only processes of this owner. */
      readonly owner?: string;
      /** How long to wait for a server that went away; 30 seconds by default. */
      readonly reconnectMs?: number;
    }
  | {
      /** The address of a server, such as "https://box.example/holdfast"; several of gateways with the same tokens. */
      readonly url: string | readonly string[];
      readonly token: string;
      /** The owner to act as, with the admin token. */
      readonly owner?: string;
      readonly reconnectMs?: number;
    };

/** Connects to the local server, which is started if it is not running, or to a remote one. */
export async function connect(target: ConnectTarget = {}): Promise<Holdfast> {
  const holdfast =
    'url' in target
      ? new Holdfast(httpApi(target), undefined, target)
      : new Holdfast(httpApi(localTarget(target)), callerDefaults(target), target);
  await holdfast.health();
  return holdfast;
}

/** Evaluated at every start: a program may change its environment and working directory. */
function callerDefaults({
  env,
  inherit = 'caller',
}: Exclude<ConnectTarget, { url: unknown }>): StartDefaults | undefined {
  if (inherit === 'host') return undefined;
  return ({ pty, cwd = '' }) => ({
    // A relative path is relative to this process; the host would resolve it against its own directory.
    cwd: /^~(\/|$)/.test(cwd) ? cwd : resolve(cwd),
    environment: { inherit: 'none', set: inheritedEnvironment(env ?? process.env, pty) },
  });
}

function localTarget(
  target: Exclude<ConnectTarget, { url: unknown }>,
): Parameters<typeof httpApi>[0] {
  const named = target.home ?? (target.env ?? process.env)['HOLDFAST_HOME'];
  const home = resolve(named || join(homedir(), '.holdfast'));
  return {
    socketPath: socketIn(home, SERVER_SOCKET),
    pid: () => pidInLock(join(home, 'server.lock')),
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

/** The server writes its pid into its lock file. */
function pidInLock(lock: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(lock, 'utf8')) as { pid: number }).pid;
  } catch {
    // No server has written its pid yet.
    return undefined;
  }
}

/**
 * Starts a server with the options of the one that died. If another process wins the race to start one, that is no
 * failure.
 */
async function startLocalServer(home: string, env: NodeJS.ProcessEnv | undefined): Promise<void> {
  const main = fileURLToPath(builtFile(import.meta.url, '../cli/main.js'));
  try {
    await startServerProcess([main, '--home', home, '--resume'], { ...(env && { env }) });
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'server_running') throw error;
  }
}
