// The codex door: the route at which a WebSocket speaks codex's exec-server protocol.

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
  /** Where commands run that name no directory, and what the client is told. */
  readonly cwd?: string;
  /** How long a session outlives its connection. */
  readonly detachMs?: number | undefined;
  /** TERM to KILL when a client terminates a process. */
  readonly graceMs?: number | undefined;
  readonly serial?: boolean;
  readonly countStart?: (caller: Caller) => void;
}

/** A laptop's nap; the client itself tries for 25 seconds after it woke. */
const DETACH_MS = 30 * 60_000;
/** Ended processes can be read at least so long: the peer's number. */
const LEAST_KEEP_MS = 30_000;
/** Requests may be as large as the answers that the client takes. */
const MAX_MESSAGE_BYTES = 72 * 1024 * 1024;

/** Output leaves in pieces of about this size; a few are kept for reuse. */
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
    keepMs: detachMs + LEAST_KEEP_MS,
    graceMs: options.graceMs ?? defaultLimits.graceMs,
    // A command that reached the keeper's socket could start another without a sandbox.
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
