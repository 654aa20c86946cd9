// Codex connections on WebSockets, which speak the protocol of codex's exec-server.

import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { realpathSync } from 'node:fs';
import { BufferPool } from '../../base/bytes/buffer-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { VERSION } from '../../base/version.ts';
import { OwnerPolicies } from '../../host/limits/owner-policies.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { defaultLimits } from '../../protocol/limits.ts';
import { openHome } from '../../keeper/home.ts';
import type { Caller } from '../http/gate.ts';
import type { SocketOpener } from '../http/router.ts';
import { CodexConnection, type CodexOptions } from './connection.ts';
import { findBubblewrap } from './sandbox/sandbox.ts';
import { SESSION_HEADER, Sessions } from './sessions.ts';
import { SocketWire } from './wire/socket-wire.ts';

export interface CodexDoorOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly report: (message: string) => void;
  /** The working directory of commands that name none; clients see it. */
  readonly cwd?: string;
  /** How long a session outlives its connection. */
  readonly detachMs?: number | undefined;
  /** Between SIGTERM and SIGKILL when a client terminates a process. */
  readonly graceMs?: number | undefined;
  readonly serial?: boolean;
  /** The program bwrap, where it is in an unusual place. */
  readonly bubblewrap?: string | undefined;
  readonly countStart?: (caller: Caller) => void;
}

/** A laptop's sleep; the client itself retries for 25 seconds after it wakes. */
const DETACH_MS = 30 * 60_000;
/** Exited processes can be read for at least this long, as in codex's server. */
const MIN_KEEP_MS = 30_000;
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
    policies: new OwnerPolicies(home, () => clock.wallMs()),
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
    sandbox: {
      hidden: [realpathSync(home), dirname(openHome(home).socket)],
      tmpdir: env['TMPDIR'],
      bubblewrap: findBubblewrap(options.bubblewrap),
    },
    serial: options.serial ?? false,
    countStart: options.countStart ?? (() => undefined),
  };
}

export function codexOpener(options: CodexOptions): SocketOpener {
  const blocks = new BufferPool(BLOCK_BYTES, BLOCKS);
  const { clock } = options;
  return (socket, { caller, request }) => {
    const stream = request.socket;
    const { remoteAddress = 'unix', remotePort = 0 } = stream;
    const peer = `${remoteAddress}:${remotePort}`;
    const prefix = request.headers[SESSION_HEADER];
    void new CodexConnection(
      options,
      caller,
      (listener) => new SocketWire({ socket, stream, peer, clock, blocks }, listener),
      typeof prefix === 'string' ? prefix : undefined,
    );
  };
}
