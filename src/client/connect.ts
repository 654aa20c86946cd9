// Finding Holdfast: the local server, started if none is there, or a remote one by its address.

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

export type ConnectTarget = LeaseOptions & Reached;

type Reached =
  | {
      /** The state directory of the local server; by default $HOLDFAST_HOME, else ~/.holdfast. */
      readonly home?: string;
      /** Environment of this caller, and of a server that has to be started; by default this program's. */
      readonly env?: NodeJS.ProcessEnv;
      /**
       * What processes inherit that say nothing of it. caller: environment and working directory of this program, as
       * with `holdfast run`. host: those of the keeper, as over a network.
       */
      readonly inherit?: 'caller' | 'host';
      /** Fail instead of starting one. */
      readonly startIfMissing?: boolean;
      /** Sees and starts only what belongs to this owner. */
      readonly owner?: string;
      /** How long a server that went away is waited for; 30 seconds by default. */
      readonly reconnectMs?: number;
    }
  | {
      /** Of a server that may be anywhere, as "https://box.example/holdfast". */
      readonly url: string;
      readonly token: string;
      /** In whose name, when the token is the admin's. */
      readonly owner?: string;
      readonly reconnectMs?: number;
    };

/** Connects to the local server, which is started if it is not there, or to a remote one. */
export async function connect(target: ConnectTarget = {}): Promise<Holdfast> {
  const holdfast =
    'url' in target
      ? new Holdfast(httpApi(target), undefined, target)
      : new Holdfast(httpApi(local(target)), defaultsOf(target), target);
  await holdfast.health();
  return holdfast;
}

/** Looked at with every start: a program may change its environment and its directory. */
function defaultsOf({
  env,
  inherit = 'caller',
}: Exclude<ConnectTarget, { url: string }>): StartDefaults | undefined {
  if (inherit === 'host') return undefined;
  return ({ pty, cwd = '' }) => ({
    // A relative one is meant from here: the host would take it from its own.
    cwd: /^~(\/|$)/.test(cwd) ? cwd : resolve(cwd),
    environment: { inherit: 'none', set: inheritedEnvironment(env ?? process.env, pty) },
  });
}

function local(target: Exclude<ConnectTarget, { url: string }>): Parameters<typeof httpApi>[0] {
  const named = target.home ?? (target.env ?? process.env)['HOLDFAST_HOME'];
  const home = resolve(named || join(homedir(), '.holdfast'));
  return {
    socketPath: socketIn(home, SERVER_SOCKET),
    pid: () => notedPid(join(home, 'server.lock')),
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

/** Who has the server's lock says so in it. */
function notedPid(lock: string): number | undefined {
  try {
    return (JSON.parse(readFileSync(lock, 'utf8')) as { pid: number }).pid;
  } catch {
    // No server has said so yet.
    return undefined;
  }
}

/** As the one that died was started. One that lost the race to start is no failure: the other serves. */
async function startLocalServer(home: string, env: NodeJS.ProcessEnv | undefined): Promise<void> {
  const main = fileURLToPath(builtFile(import.meta.url, '../cli/main.js'));
  try {
    await startServerProcess([main, '--home', home, '--resume'], { ...(env && { env }) });
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'server_running') throw error;
  }
}
