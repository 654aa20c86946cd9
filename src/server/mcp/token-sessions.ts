// The MCP sessions of each token, with the tools. Loaded when the first MCP client comes, or soon after the server's start.

import type { Clock } from '../../base/clock.ts';
import type { HostApi } from '../../protocol/host-api.ts';
import { createMcpServer } from '../../tools/mcp/server.ts';
import type { Caller } from '../http/gate.ts';
import { McpSessions } from './sessions.ts';
import { inProcessApi } from '../../terminals/in-process-api.ts';
import type { TerminalCallOptions } from '../../terminals/in-process-terminals.ts';
import type { StartRate } from '../start-rate.ts';

export { loadMcpLibrary } from '../../tools/mcp/server.ts';

export interface TokenSessionsOptions {
  readonly host: HostApi;
  readonly clock: Clock;
  readonly terminals: TerminalCallOptions['terminals'];
  /** The shell of the server's user. */
  readonly shell: string;
  readonly startRate: StartRate;
  /** Whether a scoped token is neither revoked nor expired; by default always. */
  readonly isValid?: ((tokenId: string) => boolean) | undefined;
  readonly defaultDirectory?: string | undefined;
  /** How often a wait reports progress. */
  readonly heartbeatMs?: number | undefined;
  readonly report: (message: string) => void;
}

/** How often revoked tokens are looked for. */
const SWEEP_MS = 60_000;

interface TokenEntry {
  readonly caller: Caller;
  readonly sessions: McpSessions;
  /** Requests that are being answered. */
  open: number;
}

/** The sessions of each token. When a token is revoked or expires, its sessions end. */
export class TokenSessions {
  private readonly options: TokenSessionsOptions;
  private readonly entries = new Map<string, TokenEntry>();
  private cancelSweep: (() => void) | undefined;

  constructor(options: TokenSessionsOptions) {
    this.options = options;
  }

  entryOf(caller: Caller): TokenEntry {
    const known = this.entries.get(caller.tokenId);
    if (known) return known;
    this.sweep();
    const entry = { caller, sessions: sessionsFor(this.options, caller), open: 0 };
    this.entries.set(caller.tokenId, entry);
    this.cancelSweep ??= this.options.clock.after(SWEEP_MS, () => this.sweep());
    return entry;
  }

  async close(): Promise<void> {
    this.cancelSweep?.();
    await Promise.all(Array.from(this.entries.values(), ({ sessions }) => sessions.close()));
  }

  /** A token without sessions is forgotten. */
  private sweep(): void {
    const { isValid, clock } = this.options;
    for (const [tokenId, { sessions, caller, open }] of this.entries) {
      const revoked = !caller.admin && isValid?.(tokenId) === false;
      if (revoked || (sessions.size === 0 && open === 0)) this.entries.delete(tokenId);
      if (revoked) void sessions.close();
    }
    this.cancelSweep?.();
    this.cancelSweep =
      this.entries.size === 0 ? undefined : clock.after(SWEEP_MS, () => this.sweep());
  }
}

/** Per token, so that starts count against its rate. */
function sessionsFor(options: TokenSessionsOptions, caller: Caller): McpSessions {
  const { clock, startRate, defaultDirectory: directory, heartbeatMs, report } = options;
  return new McpSessions({
    clock,
    serve: (owner, sessionId) => {
      const api = inProcessApi(options, owner);
      return createMcpServer({
        connection: {
          ...api,
          start: async (spec, signal) => {
            await startRate.admit(caller);
            return api.start(spec, signal);
          },
          terminals: {
            ...api.terminals,
            open: async (spec) => {
              await startRate.admit(caller);
              return api.terminals.open(spec);
            },
          },
        },
        clock,
        sessionId,
        directory,
        by: owner,
        ...(heartbeatMs !== undefined && { progressEveryMs: heartbeatMs }),
        report: (error) => report(`mcp: ${error instanceof Error ? error.message : String(error)}`),
      });
    },
  });
}
