// The codex route: a WebSocket that speaks the protocol of codex's exec-server.

import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { realpathSync } from 'node:fs';
import { BufferPool } from '../../base/bytes/buffer-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { VERSION } from '../../base/version.ts';
import { HoldfastError } from '../../protocol/errors.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { defaultLimits } from '../../protocol/limits.ts';
import { openHome } from '../../keeper/home.ts';
import type { Caller } from '../http/gate.ts';
import type { Route } from '../http/router.ts';
import { CodexConnection, type CodexOptions } from './connection.ts';
import { sandboxTools } from './sandbox/sandbox.ts';
import { Sessions } from './sessions.ts';
import { SocketWire } from './wire/socket-wire.ts';

export interface CodexDoorOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly report: (message: string) => void;
  /** The working directory of commands that name none; clients are told it. */
  readonly cwd?: string;
  /** How long a session outlives its connection. */
  readonly detachMs?: number | undefined;
  /** Between SIGTERM and SIGKILL when a client terminates a process. */
  readonly graceMs?: number | undefined;
  readonly serial?: boolean;
  readonly countStart?: (caller: Caller) => void;
}

/** A laptop's sleep; the client itself retries for 25 seconds after it wakes. */
const DETACH_MS = 30 * 60_000;
/** Exited processes can be read for at least this long, as in codex's server. */
const MIN_KEEP_MS = 30_000;
/** Requests may be as large as the answers that the client accepts. */
const MAX_MESSAGE_BYTES = 72 * 1024 * 1024;

/** The size and number of the reusable buffers for output frames. */
const BLOCK_BYTES = 512 * 1024;
const BLOCKS = 16;

export function codexOptions(options: CodexDoorOptions): CodexOptions {
  const { host, clock, home, env, report, detachMs = DETACH_MS } = options;
  return {
    host,
    clock,
    report,
    home: realpathSync(home),
    sessions: new Sessions({ host, clock, detachMs, report }),
    surroundings: {
      env,
      cwd: options.cwd ?? process.cwd(),
      userHome: env['HOME'] ?? homedir(),
      version: VERSION,
    },
    keepMs: detachMs + MIN_KEEP_MS,
    graceMs: options.graceMs ?? defaultLimits.graceMs,
    // A command that can reach the keeper's socket could start another one without a sandbox.
    sandbox: sandboxTools(realpathSync(home), [dirname(openHome(home).socket)], env),
    serial: options.serial ?? false,
    countStart: options.countStart ?? (() => undefined),
  };
}

export function codexRoute(path: string, options: CodexOptions): Route {
  const blocks = new BufferPool(BLOCK_BYTES, BLOCKS);
  return {
    method: 'GET',
    path,
    handler: () => {
      const problem = 'This path takes WebSocket connections only.';
      return Promise.reject(new HoldfastError('invalid_input', problem));
    },
    socket: {
      maxMessageBytes: MAX_MESSAGE_BYTES,
      open: (socket, { caller, request }) => {
        const stream = request.socket;
        const { clock } = options;
        const { remoteAddress = 'unix', remotePort = 0 } = stream;
        const peer = `${remoteAddress}:${remotePort}`;
        void new CodexConnection(
          options,
          caller,
          (listener) => new SocketWire({ socket, stream, peer, clock, blocks }, listener),
        );
      },
    },
  };
}
